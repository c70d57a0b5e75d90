"""A real 3.9 broker in ZooKeeper mode on what we wrote, and we on what it wrote (issue 25, must show 2)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafka2011.testing import BrokerProcess
from since2011.client.admin import Admin
from tests.interop.since2011.real_broker import RealBroker
from tests.interop.since2011.real_kafka import jars
from zk_registry.modern.texts import encode_id

RECORDS = [(f"key-{n}".encode(), f"value-{n}".encode(), [("n", str(n).encode())]) for n in range(200)]
N_PARTITIONS = 2


@pytest.fixture(autouse=True)
def real_kafka() -> None:
    jars()


def ours(connect: str, log_dir: Path, **options: object) -> BrokerProcess:
    settings = {"brokerid": 1, "modern.port": 0, "zk.connect": connect, "log.initial.task.delay.ms": 3_600_000}
    return BrokerProcess(log_dir, options=settings | {name.replace("_", "."): v for name, v in options.items()})


def write(bootstrap: str, topic: str, codec: str = "none") -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True})
    failed: list[object] = []

    def told(error: object, _message: object) -> None:
        if error:
            failed.append(error)

    for n, (key, value, headers) in enumerate(RECORDS):
        producer.produce(topic, value, key, n % N_PARTITIONS, headers=headers, on_delivery=told)
    assert producer.flush(60) == 0
    assert failed == []


def read(bootstrap: str, topic: str) -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    """Everything in the topic, as it was sent."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(N_PARTITIONS)])
    found: dict[tuple[int, int], tuple[bytes, bytes, list[tuple[str, bytes]]]] = {}
    while len(found) < len(RECORDS):
        message = consumer.poll(60)
        assert message is not None, f"{len(found)} records came"
        assert message.error() is None, message.error()
        found[message.offset(), message.partition()] = (message.key(), message.value(), message.headers() or [])
    consumer.close()
    return [found[at] for at in sorted(found)]


def test_a_real_broker_reads_what_we_wrote(zk_connect: str, tmp_path: Path) -> None:
    """Kafka 3.9 starts on a copy of our directory and on our nodes: topics, ids, settings, every record."""
    with ours(zk_connect, tmp_path / "ours") as broker:
        bootstrap = f"127.0.0.1:{broker.modern_port}"
        with Admin(bootstrap) as admin:
            for codec in ("none", "zstd"):
                admin.create(f"by-us-{codec}", partitions=N_PARTITIONS, settings={"retention.ms": "-1"})
                write(bootstrap, f"by-us-{codec}", codec)
            rows = {row.name: row for row in admin.topics()}
    shutil.copytree(tmp_path / "ours" / ".modern" / "logs", tmp_path / "real" / "logs")
    with RealBroker(f"{zk_connect}/modern", tmp_path / "real") as real:
        for codec in ("none", "zstd"):
            assert read(real.bootstrap, f"by-us-{codec}") == RECORDS
        told = real.tool("org.apache.kafka.tools.TopicCommand", "--describe")
        for row in rows.values():
            assert f"Topic: {row.name}\tTopicId: {encode_id(row.topic_id)}\tPartitionCount: 2" in told
        assert "Configs: retention.ms=-1" in told
        write(real.bootstrap, "by-us-none")
        assert not [line for line in real.output.splitlines() if " ERROR " in line]


def test_we_read_what_a_real_broker_wrote(zk_connect: str, tmp_path: Path) -> None:
    """Our broker starts on a copy of a 3.9 broker's directory and on its nodes, and goes on with it."""
    with RealBroker(f"{zk_connect}/modern", tmp_path / "real", controlled_shutdown_enable="true") as real:
        for codec in ("none", "lz4"):
            topic = f"by-them-{codec}"
            name = ("--topic", topic, "--partitions", str(N_PARTITIONS), "--config", "segment.bytes=4096")
            real.tool("org.apache.kafka.tools.TopicCommand", "--create", *name)
            write(real.bootstrap, topic, codec)
    shutil.copytree(tmp_path / "real" / "logs", tmp_path / "copy")
    with ours(zk_connect, tmp_path / "ours", log_dirs=tmp_path / "copy") as broker:
        bootstrap = f"127.0.0.1:{broker.modern_port}"
        for codec in ("none", "lz4"):
            assert read(bootstrap, f"by-them-{codec}") == RECORDS
        with Admin(bootstrap) as admin:
            (row,) = admin.topics(["by-them-none"])
            assert row.settings == {"segment.bytes": "4096"}
            assert [p.leader for p in row.partitions] == [1] * N_PARTITIONS
        write(bootstrap, "by-them-none")
