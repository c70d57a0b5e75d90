"""One real broker and one real Spark session for all tests of the load; every test has topics of its own."""

from __future__ import annotations

import json
import multiprocessing
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from hadoop_etl.cluster import Cluster
from hadoop_etl.load_run import LoadRun
from hadoop_etl.planning import Options
from hadoop_etl.runners import InlineRunner, Runner
from hadoop_etl.warehouse import TopicTable, Warehouse
from kafka2011.client import BrokerConnection
from kafka2011.events import Journal
from kafka2011.testing import BrokerProcess
from kafka2011.types import BrokerPartition
from kafka2011.wire import AckLevel, decode_set, encode_set
from kafka2011.wire.message import Codec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
NOW_MS = 1_307_847_600_000
"""2011-06-12 03:00 UTC."""

BROKER = {"log.flush.interval": 1, "log.file.size": 40_000, "produce.acks.enable": True}

Key = tuple[int, int, int]
"""Partition, offset, place inside a wrapper."""


def event(number: int, **more: Any) -> bytes:
    """A JSON event, one a second."""
    return json.dumps({"timestamp": NOW_MS + 1000 * number, "n": number, **more}).encode()


@dataclass
class Town:
    """A topic on a broker, what was sent to it, and a warehouse to load it into."""

    broker: BrokerProcess
    root: Path
    topic: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}")
    sent: list[Key] = field(default_factory=list)

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(str(self.root / "warehouse"))

    @property
    def table(self) -> TopicTable:
        return self.warehouse.table(self.topic)

    def send(self, payloads: Sequence[bytes], partition: int = 0, codec: Codec = Codec.NONE) -> int:
        """Publish, wait until it is flushed, and remember what was sent; returns the first offset."""
        data = encode_set(payloads, codec=codec)
        with BrokerConnection(self.broker.host, self.broker.port) as connection:
            first, _ = connection.produce_acked(self.topic, partition, data, AckLevel.FLUSHED)
        seen: Counter[int] = Counter()
        for message in decode_set(data, first):
            self.sent.append((partition, message.offset, seen[message.offset]))
            seen[message.offset] += 1
        return first

    def cluster(self) -> Cluster:
        return Cluster.from_brokers(self.broker.address)

    def load_run(self, runner: Runner | None = None, options: Options | None = None, **more: Any) -> LoadRun:
        chosen = options or Options()
        return LoadRun(self.warehouse, self.cluster(), runner or InlineRunner(), Journal(), chosen, **more)

    def load(self, runner: Runner | None = None, options: Options | None = None, **more: Any) -> dict[str, Any]:
        return self.load_run(runner, options, **more).run([self.topic])

    def loaded(self) -> list[Key]:
        """What another engine finds in the table and in its quarantine: DuckDB, through the Delta logs."""
        rows, dead = self.table.dataset(), self.table.dead_rows()
        assert rows is not None
        assert dead is not None
        return sorted(
            duckdb.sql(
                "SELECT kpart, koffset, kidx FROM rows "
                "UNION ALL SELECT kpart, koffset, kidx FROM dead WHERE kstage <> 'gap'"
            ).fetchall()
        )

    def check(self) -> None:
        """Every message once, none twice, and the bytes add up to the offsets."""
        assert self.loaded() == sorted(self.sent)
        rows, dead = self.table.dataset(), self.table.dead_rows()
        assert rows is not None
        assert dead is not None
        sums = duckdb.sql(
            "WITH whole AS (SELECT kpart, koffset, kidx, knext FROM rows UNION ALL SELECT kpart, koffset, kidx, knext "
            "FROM dead) SELECT kpart, sum(knext - koffset), min(koffset) FROM whole WHERE kidx = 0 GROUP BY 1"
        ).fetchall()
        offsets = self.table.state().offsets
        assert {(part, int(size) + first) for part, size, first in sums} == {
            (part.partition, offset) for part, offset in offsets.items() if offset
        }


def filled(town: Town, number: int = 400) -> Town:
    """The town with as many events in each partition, one of them compressed."""
    town.send([event(i) for i in range(number)], partition=0)
    town.send([event(i) for i in range(number)], partition=1, codec=Codec.GZIP)
    return town


@pytest.fixture(scope="session")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(options=BROKER | {"num.partitions": 2}) as started:
        yield started


@pytest.fixture
def town(broker: BrokerProcess, tmp_path: Path) -> Town:
    return Town(broker, tmp_path)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of the suite."""
    from hadoop_etl.spark import start_session

    session = start_session(
        "local[2]",
        settings={"spark.driver.extraJavaOptions": QUICK_JVM, "spark.sql.shuffle.partitions": "1"},
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def forks() -> Any:
    """Processes that start in a moment, with everything imported: drivers to be killed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.integration.etl.driver"])
    return context


PART_0, PART_1 = BrokerPartition(0, 0), BrokerPartition(0, 1)
