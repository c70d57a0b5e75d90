"""Topics of both eras in one load (issue 25, point 8)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from hadoop_etl.cluster import Cluster
from hadoop_etl.errors import LoadError
from hadoop_etl.load_run import LoadRun
from hadoop_etl.modern import MODERN, ModernClient, read_batches
from hadoop_etl.planning import Options
from hadoop_etl.runners import InlineRunner
from hadoop_etl.warehouse import Warehouse
from kafka2011.client import BrokerConnection
from kafka2011.events import Journal
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckLevel, encode_set
from since2011.wire.codec import Struct
from since2011.wire.record_batch import TRANSACTIONAL
from since2011.wire.records import Marker, Record, encode_marker, encode_records

OPTIONS = {"modern.port": 0, "num.partitions": 1, "log.flush.interval": 1, "produce.acks.enable": True}
DAY_MS = 86_400_000
NOW_MS = 1_795_000_000_000

Sent = tuple[bytes | None, bytes | None, int, list[tuple[str, bytes]]]
"""Key, value, timestamp, headers."""


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(options=OPTIONS) as found:
        yield found


def send(broker: BrokerProcess, topic: str, records: list[Sent]) -> None:
    """Publish as an unmodified client of today does."""
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.modern_port}", "compression.type": "zstd"})
    for key, value, stamp, headers in records:
        producer.produce(topic, value, key, timestamp=stamp, headers=headers, partition=0)
    assert producer.flush(30) == 0


def load(broker: BrokerProcess, warehouse: Warehouse, *topics: str) -> dict[str, Any]:
    cluster = Cluster.from_brokers(f"{broker.host}:{broker.port}")
    try:
        cluster.add_modern(ModernClient.parse(f"127.0.0.1:{broker.modern_port}"))
        return LoadRun(warehouse, cluster, InlineRunner(1), Journal(), Options()).run(topics)
    finally:
        cluster.close()


def rows(warehouse: Warehouse, topic: str) -> list[dict[str, Any]]:
    found = warehouse.table(topic).dataset().to_table().to_pylist()
    return sorted(found, key=lambda row: (row["kpart"], row["koffset"]))


def test_one_load_of_both_eras(broker: BrokerProcess, tmp_path: Path) -> None:
    """Key, value, timestamp, headers and dense offsets are in the table; each record once, over two loads."""
    warehouse = Warehouse(str(tmp_path))
    events = [json.dumps({"timestamp": NOW_MS + i, "n": i}).encode() for i in range(10)]
    orders: list[Sent] = [
        (b"k%d" % i, json.dumps({"n": i}).encode(), NOW_MS - i * DAY_MS, [("h", b"\xff"), ("h", b"")]) for i in range(6)
    ]
    orders += [(b"k1", None, NOW_MS, []), (None, b'{"n": 7, "timestamp": 1307847600000}', NOW_MS, [])]
    for number in (1, 2):
        with BrokerConnection(broker.host, broker.port) as connection:
            connection.produce_acked("clicks", 0, encode_set(events), AckLevel.FLUSHED)
        send(broker, "orders", orders)
        report = load(broker, warehouse, "clicks", "orders")
        assert (report["exit_code"], report["rows"]) == (0, 18), report
        assert len(rows(warehouse, "clicks")) == 10 * number
        found = rows(warehouse, "orders")
        assert [row["koffset"] for row in found] == list(range(8 * number))
        assert {row["kbroker"] for row in found} == {MODERN}
        kept = [
            (
                row["kkey"],
                round(row["ktime"].timestamp() * 1000),
                [(header["name"], header["value"]) for header in row["kheaders"]],
            )
            for row in found
        ]
        assert kept == [(key, stamp, headers) for key, _, stamp, headers in orders] * number
        assert [row["n"] for row in found] == [0, 1, 2, 3, 4, 5, None, 7] * number
        # The record's own time, unless the event says otherwise.
        moments = [round(row["ts"].timestamp() * 1000) for row in found]
        assert moments == [*(NOW_MS - i * DAY_MS for i in range(6)), NOW_MS, 1_307_847_600_000] * number
        assert [row["dt"] for row in found] == [row["ts"].date() for row in found]
    command = [sys.executable, "-m", "kafka2011", "etl", "run", "-b", f"{broker.host}:{broker.port}", "-t", "orders"]
    command += ["--modern", f"127.0.0.1:{broker.modern_port}", "-w", str(tmp_path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["rows"]) == (0, 0), done.stderr


def test_values_that_are_no_events_cost_only_themselves(broker: BrokerProcess, tmp_path: Path) -> None:
    """A value that cannot be decoded is one dead row with its bytes; raw values and empty ones are kept as they are."""
    warehouse = Warehouse(str(tmp_path))
    send(broker, "mixed", [(None, b'{"n": %d}' % i, NOW_MS, []) for i in range(50)] + [(b"k", b"{", NOW_MS, [])])
    send(broker, "raw", [(b"k", b"\xff\0", NOW_MS, []), (b"k", b"", NOW_MS, []), (b"k", None, NOW_MS, [])])
    assert load(broker, warehouse, "mixed", "raw")["exit_code"] == 0
    dead = warehouse.table("mixed").dead_rows().to_table().to_pylist()
    assert [(row["koffset"], row["knext"], row["value"]) for row in dead] == [(50, 51, b"{")]
    assert [row["value"] for row in rows(warehouse, "raw")] == [b"\xff\0", b"", None]


def test_a_topic_made_again_is_another_log(broker: BrokerProcess, tmp_path: Path) -> None:
    """A table goes on only with the topic it was loaded from, known by its id; the other topics are loaded."""
    warehouse = Warehouse(str(tmp_path))
    send(broker, "again", [(None, b"x", NOW_MS, [])])
    load(broker, warehouse, "again")
    cluster = Cluster.from_brokers(f"{broker.host}:{broker.port}")
    cluster.add_modern(ModernClient.parse(f"127.0.0.1:{broker.modern_port}"))
    (part,) = cluster.partitions("again")
    mark = warehouse.table("again").state().positions[part].mark
    assert mark is not None
    cluster.check_mark("again", part, mark, 0, 1)
    send(broker, "other", [(None, b"x", NOW_MS, [])])
    cluster.add_modern(ModernClient.parse(f"127.0.0.1:{broker.modern_port}"))
    with pytest.raises(LoadError, match="another id"):
        cluster.check_mark("other", part, mark, 0, 1)
    cluster.close()


def test_what_was_aborted_is_not_loaded() -> None:
    """Records of an aborted transaction are passed over, up to its marker and no further; damage costs its batch."""

    def batch(offset: int, values: list[bytes], producer: int) -> bytes:
        records = [Record(offset + i, NOW_MS, None, value) for i, value in enumerate(values)]
        return encode_records(records, producer_id=producer, producer_epoch=0, attributes=TRANSACTIONAL)

    aborted = [Struct(producer_id=7, first_offset=0)]
    ended = encode_marker(Marker(False, 0), producer_id=7, producer_epoch=0, timestamp=NOW_MS, offset=3)
    good = batch(2, [b"kept"], 8) + ended
    bad = bytearray(batch(5, [b"broken"], 7))
    bad[-1] ^= 1
    data = batch(0, [b"gone", b"gone"], 7) + good + batch(4, [b"later"], 7) + bytes(bad)
    entries, reached = read_batches(data, 0, 100, aborted)
    assert [value for each in entries.rows for value in each.payload.to_pylist()] == [b"kept", b"later"]
    assert [(dead.offset, dead.next_offset) for dead in entries.dead] == [(5, 6)]
    assert reached == 6
