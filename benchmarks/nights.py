"""Thousands of loads into one table: what does the last one cost, and what do they leave behind?

``python -m benchmarks.etl --nights 2000``: a load an hour for 83 days, each with its own lock, plan, report and objects
as a new process would have them; once a day ``compact`` and ``vacuum``. Hours pass by a clock of the benchmark's own
and by the times of the log's files, so that what is kept for some days is seen to go.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from unittest import mock

from deltalake import DeltaTable

from hadoop_etl import warehouse as warehouses
from hadoop_etl.cluster import Cluster
from hadoop_etl.load_run import LoadRun
from hadoop_etl.planning import Options
from hadoop_etl.runners import InlineRunner
from hadoop_etl.upkeep import compact, vacuum
from hadoop_etl.warehouse import Warehouse
from kafka2011.client import BrokerConnection
from kafka2011.clock import ManualClock
from kafka2011.events import Journal
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckLevel, encode_set

HOUR_S = 3600.0
TOPIC = "clicks"
START_MS = 1_307_836_800_000
ROWS = 100
TURNS = 60
OPTIONS = {"log.flush.interval": 1, "produce.acks.enable": True}


class Calendar:
    """Makes the files of a table's log as old as the hours that passed since they were written."""

    def __init__(self, table: Path) -> None:
        self._log, self._born = table / "_delta_log", dict[str, int]()

    def note(self, hour: int) -> None:
        """Remember the hour of new files."""
        if self._log.exists():
            for name in os.listdir(self._log):
                self._born.setdefault(name, hour)

    def age(self, hour: int) -> None:
        """Let time pass."""
        now = time.time()
        for name in os.listdir(self._log) if self._log.exists() else ():
            moment = now - (hour - self._born.get(name, hour)) * HOUR_S
            os.utime(self._log / name, (moment, moment))


class Nights:
    """The loads, and what is measured of them. Thread: one."""

    def __init__(self, place: str, broker: BrokerProcess) -> None:
        self._place, self._broker, self._clock = place, broker, ManualClock(START_MS)
        self._tables = [Path(place, TOPIC), Path(place, f"{TOPIC}__dead")]
        self._calendars = [Calendar(table) for table in self._tables]
        self.load_ms: list[float] = []
        self.cpu_ms: list[float] = []
        self.upkeep_ms: list[float] = []
        self.reads: list[int] = []

    def hour(self, number: int) -> None:
        """A hundred events and one that is none, and their load; once a day the upkeep."""
        events = [{"timestamp": self._clock.wall_ms() + i, "n": number * ROWS + i} for i in range(ROWS)]
        payloads = [*(json.dumps(event).encode() for event in events), b"not an event"]
        with BrokerConnection(self._broker.host, self._broker.port) as connection:
            connection.produce_acked(TOPIC, 0, encode_set(payloads), AckLevel.FLUSHED)
        self.reads.append(0)
        began, used = time.perf_counter(), time.process_time()
        cluster = Cluster.from_brokers(self._broker.address)
        load = LoadRun(Warehouse(self._place), cluster, InlineRunner(1), Journal(), Options(), clock=self._clock)
        load.announcer.keep_days = 30
        report = load.run([TOPIC])
        cluster.close()
        self.load_ms.append(1000 * (time.perf_counter() - began))
        self.cpu_ms.append(1000 * (time.process_time() - used))
        assert (report["state"], report["rows"], report["dead"]) == ("committed", ROWS, 1), report
        self._clock.advance(HOUR_S)
        if not number:
            self._shorten_weeks()
        if number % 24 == 23:
            self._upkeep()
        for calendar in self._calendars:
            calendar.note(number)
            if number % 24 == 23:
                calendar.age(number)

    def _shorten_weeks(self) -> None:
        """A checkpoint names removed files for a week; here a week of loads takes about a minute."""
        for table in self._tables:
            DeltaTable(str(table)).alter.set_table_properties(
                {"delta.deletedFileRetentionDuration": "interval 60 seconds"}
            )

    def _upkeep(self) -> None:
        """What a person would run once a day."""
        began = time.perf_counter()
        table = Warehouse(self._place).table(TOPIC)
        compact(table)
        vacuum(table, keep_hours=0, dry_run=False)
        self.upkeep_ms.append(1000 * (time.perf_counter() - began))

    def line(self, last: int) -> dict[str, int]:
        """What the last loads cost, and what lies there now."""
        table, dead = self._tables
        return {
            "loads": len(self.load_ms),
            "median ms": round(statistics.median(self.load_ms[-last:])),
            "CPU ms": round(statistics.median(self.cpu_ms[-last:])),
            "most ms": round(max(self.load_ms[-last:])),
            "log entries read": max(self.reads[-last:]),
            "upkeep ms": round(statistics.median(self.upkeep_ms[-10:] or [0.0])),
            "data files": len(list(table.glob("dt=*/*.parquet"))),
            "days": len(list(table.glob("dt=*"))),
            "dead files": len(list(dead.glob("dt=*/*.parquet"))),
            "files in the log": len(os.listdir(table / "_delta_log")),
            "in the dead one's": len(os.listdir(dead / "_delta_log")),
            "loads remembered": len(os.listdir(Path(self._place, "_etl", "loads"))),
        }


def turn_by_turn(old: Nights, last: int) -> float:
    """CPU of a load after ``last`` others, as a multiple of that of one after twenty, in a warehouse of its own.

    One of each by turns, so that whatever else the machine does, it does to both.
    """
    with (
        tempfile.TemporaryDirectory(prefix="kafka2011-nights-") as place,
        BrokerProcess(options=OPTIONS) as broker,
    ):
        young = Nights(place, broker)
        for number in range(20):
            young.hour(number)
        for number in range(TURNS):
            young.hour(20 + number)
            old.hour(last + number)
    late, early = (statistics.median(loads.cpu_ms[-TURNS:]) for loads in (old, young))
    print(f"CPU of a load, median of {TURNS} by turns: after 20 loads {early:.1f} ms, after {last:,} {late:.1f} ms")
    return late / early


def nights(count: int) -> None:
    """Load ``count`` times and print a line for every eighth part; then compare the last with an early one."""
    every, lines = max(count // 8, 1), list[dict[str, int]]()
    real = warehouses.read_text
    with (
        tempfile.TemporaryDirectory(prefix="kafka2011-nights-") as place,
        BrokerProcess(options=OPTIONS) as broker,
    ):
        loads = Nights(place, broker)

        def counted(uri: str) -> str:
            loads.reads[-1] += 1
            return real(uri)

        with mock.patch.object(warehouses, "read_text", counted):
            for number in range(count):
                loads.hour(number)
                if (number + 1) % every == 0:
                    lines.append(loads.line(every))
                    print(", ".join(f"{name} {value:,}" for name, value in lines[-1].items()), flush=True)
        ratio = turn_by_turn(loads, count)
        count += TURNS
        table = Warehouse(place).table(TOPIC)
        assert (table.dataset().count_rows(), table.dead_rows().count_rows()) == (ROWS * count, count)
    print(f"{count:,} loads: {ROWS * count:,} rows and {count:,} dead rows, all there; CPU late / early {ratio:.2f}")
