"""A power cut under a broker with modern topics: what was flushed is there (issue 25, must show 5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from kafka2011.testing import BrokerProcess
from since2011.client.admin import Admin
from tests.integration.log.disk import Disk, mounted
from tests.waiting import until

OPTIONS = {"modern.port": 0, "log.initial.task.delay.ms": 3_600_000, "num.partitions": 1}
ENOUGH = 100


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path) as found:
        yield found


def flood(bootstrap: str, topic: str, acknowledged: dict[int, bytes], turn: int) -> None:
    """Write until so many are acknowledged, and go on without waiting for the rest."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 1, "message.timeout.ms": 5000})

    def told(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged[message.offset() or 0] = message.value() or b""

    before = len(acknowledged)

    def enough() -> bool:
        for number in range(50):
            producer.produce(topic, b"%d-%d" % (turn, number), on_delivery=told)
        producer.poll(0.01)
        return len(acknowledged) - before > ENOUGH

    until(enough, f"{ENOUGH} records of {topic} are acknowledged")
    producer.purge()
    producer.flush(5)


def read(bootstrap: str, topic: str) -> dict[int, bytes]:
    """Everything that is in the topic now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: dict[int, bytes] = {}
    while True:
        message = consumer.poll(60)
        assert message is not None, f"{len(found)} records of {topic} came"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            consumer.close()
            return found
        found[message.offset() or 0] = message.value() or b""


def test_nothing_flushed_is_lost_by_a_power_cut(disk: Disk) -> None:
    """Twice: with flush.messages=1 every acknowledged record is there, at its offset; of the others a prefix.

    The control: a file written just before each cut, and not forced to disk, is gone.
    """
    acknowledged: dict[int, bytes] = {}
    others: dict[int, bytes] = {}
    for turn in range(2):
        control = disk.mountpoint / f"not-forced-{turn}"
        with BrokerProcess(disk.mountpoint / "data", OPTIONS, expected_errors=("LogDirectoryOffline", "EIO")) as broker:
            bootstrap = f"127.0.0.1:{broker.modern_port}"
            if turn == 0:
                with Admin(bootstrap) as admin:
                    admin.create("flushed", partitions=1, settings={"flush.messages": "1", "segment.bytes": "20000"})
                    admin.create("cached", partitions=1, settings={"segment.bytes": "20000"})
            others = {}
            flood(bootstrap, "cached", others, turn)
            flood(bootstrap, "flushed", acknowledged, turn)
            control.write_bytes(b"x" * 10_000)
            disk.cut_power()
            broker.kill()
        disk.umount()
        disk.mount()
        assert not control.exists() or control.read_bytes() != b"x" * 10_000
        with BrokerProcess(disk.mountpoint / "data", OPTIONS) as broker:
            bootstrap = f"127.0.0.1:{broker.modern_port}"
            flushed, cached = read(bootstrap, "flushed"), read(bootstrap, "cached")
        assert {offset: flushed.get(offset) for offset in acknowledged} == acknowledged
        assert sorted(flushed) == list(range(len(flushed)))
        assert sorted(cached) == list(range(len(cached)))
        assert all(others[offset] == value for offset, value in cached.items() if offset in others)
