"""The demo as one object: start everything, keep it going, add it all up at the end.

Paper: the whole of it on one machine: §3.1 brokers, §3.2 registries and Algorithm 1, §3.3 delivery, §4 load and audit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from classroom.cluster.cli import observatory_process
from classroom.cluster.cluster import Cluster, Size
from classroom.cluster.processes import Process
from classroom.demo.events import SCHEMAS
from classroom.demo.night import Night
from classroom.demo.summary import Summary, caught_up, make_summary
from classroom.observatory.faults import DROP_FILE
from hadoop_etl.state import load_uri
from hadoop_etl.warehouse import Warehouse
from kafka2011.client import BrokerConnection

GROUP = "newsfeed"
MODERN_GROUP = "newsfeed-modern"
FIRST_LOAD_S = 50.0
CATCH_UP_S = 60.0


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user asked for."""

    size: Size
    consumers: int = 3
    members: int = 2
    rate: float = 200.0
    load_every_s: float = 180.0
    spark: bool = True
    observatory: bool = True
    faults: bool = True
    port_base: int | None = None


class Demo:
    """A running demo in one directory. Thread: one."""

    def __init__(self, directory: Path, choices: Choices, say: Callable[[str], None]) -> None:
        self._choices, self._say = choices, say
        self.cluster = Cluster(
            directory, choices.size, settings=_SETTINGS, with_parent=True, port_base=choices.port_base, say=say
        )
        self.directory = directory
        self._night = Night(directory, self.cluster, "local[*]" if choices.spark else "inline", say)

    def start(self) -> str | None:
        """Start everything; return the page's address, if there is one."""
        self._say("starting ZooKeeper and the brokers …")
        self.cluster.up()
        self._create_topics()
        address = None
        if self._choices.observatory:
            reports = Path(load_uri(Warehouse(str(self.directory / "warehouse")), "")).parent
            extra = ["--schemas", str(self.directory / "schemas"), "--reports", str(reports)]
            if self._choices.faults:
                extra += ["--allow-faults", "--allow-writes"]
            page = self.cluster.start(observatory_process(self.cluster, *extra))
            address = f"http://127.0.0.1:{page.ready['port']}/"
        self._say(f"starting {self._choices.consumers} consumers, {self._choices.members} modern members, a producer …")
        self.cluster.processes.start_together(
            [self._activity(), *self._readers(), *self._modern_readers()], timeout_s=120.0
        )
        return address

    def run(self, seconds: float | None, over: threading.Event) -> None:
        """Let it run, with a load at the end of the first minute and every few minutes, until time or Ctrl-C."""
        began = time.monotonic()
        next_load = FIRST_LOAD_S if seconds is None else min(FIRST_LOAD_S, seconds * 0.6)
        said = 0.0
        while not over.is_set():
            now = time.monotonic() - began
            if seconds is not None and now >= seconds:
                return
            if now >= next_load:
                self._night.start()
                next_load = now + self._choices.load_every_s
            self._night.look()
            if now - said >= 15:
                said = now
                self._say_how_it_goes(now)
            over.wait(0.2)

    def finish(self) -> Summary:
        """Stop the producers, let every reader catch up, load the rest, and compare all counts."""
        processes = self.cluster.processes
        self._say("stopping the producers; waiting until every group has read everything …")
        processes.stop([process.name for process in processes.of_kind("activity")], timeout_s=40.0)
        groups = [GROUP] * bool(self._choices.consumers) + [MODERN_GROUP] * bool(self._choices.members)
        caught_up(self.directory, self.cluster, groups, CATCH_UP_S)
        names = [process.name for kind in ("consumer", "member") for process in processes.of_kind(kind)]
        processes.stop(names, timeout_s=30.0)
        return make_summary(self.directory, self.cluster, groups, self._night.finish())

    def stop(self) -> None:
        """Stop every process of the demo."""
        self._night.abandon()
        self.cluster.down()

    def _create_topics(self) -> None:
        """Make every broker hold every topic: an empty set creates it, and producers keep to brokers that have it."""
        for process in self.cluster.processes.of_kind("broker"):
            with BrokerConnection(process.ready["host"], process.ready["port"]) as connection:
                for topic in SCHEMAS:
                    connection.produce(topic, 0, b"")

    def _say_how_it_goes(self, now: float) -> None:
        dead = [process.name for process in self.cluster.processes.all.values() if not process.running]
        text = f"{now:4.0f} s  {len(self.cluster.processes.all) - len(dead)} processes run"
        self._say(text + (f"; not running: {', '.join(dead)}" if dead else ""))

    def _common(self, name: str) -> list[str]:
        return ["--zookeeper", self.cluster.zookeeper, "--name", name, "--directory", str(self.directory)]

    def _activity(self) -> Process:
        arguments = ["classroom.demo.activity", *self._common("web-0"), "--rate", str(self._choices.rate)]
        return Process("web-0", "activity", [*arguments, "--drop-file", str(self.directory / DROP_FILE)])

    def _readers(self) -> list[Process]:
        names = [f"consumer-{number}" for number in range(self._choices.consumers)]
        return [
            Process(name, "consumer", ["classroom.demo.reader", *self._common(name), "--group", GROUP])
            for name in names
        ]

    def _modern_readers(self) -> list[Process]:
        names = [f"member-{number}" for number in range(self._choices.members)]
        return [
            Process(name, "member", ["classroom.demo.modern_reader", *self._common(name), "--group", MODERN_GROUP])
            for name in names
        ]


_SETTINGS = (
    # Small segments, so that one sees them roll; quick flushes, so that one sees messages at once.
    "log.file.size=65536",
    "log.flush.interval=50",
    "log.default.flush.interval.ms=500",
    "log.default.flush.scheduler.interval.ms=250",
    "topic.partition.count.map=audit:1",
)
