"""Modern topics with unmodified clients of today: everything they write is read back equal, by each of them.

Issue 25, "what it must show" 1: key, headers, timestamp, null values, four codecs, exact offsets in delivery reports.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition

from kafka2011.testing import BrokerProcess
from tests.waiting import PATIENCE_S

OPTIONS = {"modern.port": 0, "group.initial.rebalance.delay.ms": 0}


class Sent(NamedTuple):
    """One record as an application sees it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker that makes modern topics."""
    with BrokerProcess(options=OPTIONS) as broker:
        yield f"127.0.0.1:{broker.modern_port}"


def wanted(n: int) -> list[Sent]:
    """Records of every kind, stamped within the last minute: offsets are what a new topic gives them."""
    now = int(time.time() * 1000) - 60_000
    found = []
    for i in range(n):
        headers = (("h", b"\xff\0"), ("h", b"again"), ("empty", b"")) if i % 3 else ()
        value = None if i % 5 == 4 else b"" if i % 7 == 6 else b"value-%d" % i * 20
        key = None if value is not None and i % 6 == 5 else b"key-%d" % i
        found.append(Sent(i, now + i * 3 - (i % 4), key, value, headers))
    return found


def send_confluent(bootstrap: str, topic: str, records: list[Sent], codec: str) -> list[int]:
    offsets: dict[int, int] = {}
    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20, "enable.idempotence": True}
    producer = Producer(settings)

    def told(number: int) -> Callable[[Any, Any], None]:
        def report(error: Any, message: Any) -> None:
            assert error is None, error
            offsets[number] = message.offset()

        return report

    for number, one in enumerate(records):
        producer.produce(
            topic, one.value, one.key, partition=0, timestamp=one.timestamp, headers=list(one.headers),
            on_delivery=told(number),
        )  # fmt: skip
    assert producer.flush(PATIENCE_S) == 0
    return [offsets[number] for number in range(len(records))]


def send_kafka_python(bootstrap: str, topic: str, records: list[Sent], codec: str) -> list[int]:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, linger_ms=20, acks="all"
    )
    try:
        futures = [
            producer.send(topic, one.value, one.key, list(one.headers), partition=0, timestamp_ms=one.timestamp)
            for one in records
        ]
        return [future.get(PATIENCE_S).offset for future in futures]
    finally:
        producer.close()


def send_aiokafka(bootstrap: str, topic: str, records: list[Sent], codec: str) -> list[int]:
    async def send() -> list[int]:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, enable_idempotence=True
        )
        await producer.start()
        try:
            futures = [
                await producer.send(
                    topic, one.value, one.key, partition=0, timestamp_ms=one.timestamp, headers=list(one.headers)
                )
                for one in records
            ]
            return [(await future).offset for future in futures]
        finally:
            await producer.stop()

    return asyncio.run(send())


def read_confluent(bootstrap: str, topic: str, n: int) -> list[Sent]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Sent] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < n and time.monotonic() < deadline:
        for one in consumer.consume(n, 0.5):
            assert one.error() is None, one.error()
            headers = tuple(one.headers() or ())
            found.append(Sent(one.offset(), one.timestamp()[1], one.key(), one.value(), headers))
    consumer.close()
    return found


def read_kafka_python(bootstrap: str, topic: str, n: int) -> list[Sent]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=int(PATIENCE_S * 1000))
    place = KafkaPythonPartition(topic, 0)
    consumer.assign([place])
    consumer.seek(place, 0)
    found = []
    for one in consumer:
        found.append(Sent(one.offset, one.timestamp, one.key, one.value, tuple(one.headers)))
        if len(found) == n:
            break
    consumer.close()
    return found


def read_aiokafka(bootstrap: str, topic: str, n: int) -> list[Sent]:
    async def read() -> list[Sent]:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        )
        await consumer.start()
        try:
            found = []
            while len(found) < n:
                one = await asyncio.wait_for(consumer.getone(), PATIENCE_S)
                found.append(Sent(one.offset, one.timestamp, one.key, one.value, tuple(one.headers)))
            return found
        finally:
            await consumer.stop()

    return asyncio.run(read())


PURE = {"none", "gzip"}
"""What kafka-python can do without further packages."""
SENDERS = {"confluent": send_confluent, "kafka_python": send_kafka_python, "aiokafka": send_aiokafka}
READERS = {"confluent": read_confluent, "kafka_python": read_kafka_python, "aiokafka": read_aiokafka}


CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize(
    ("sender", "codec"),
    [(name, codec) for name in sorted(SENDERS) for codec in CODECS if name != "kafka_python" or codec in PURE],
)
def test_what_one_client_writes_all_read(bootstrap: str, sender: str, codec: str) -> None:
    """Issue 25: keys, headers, times and nulls come back equal from all three readers; reported offsets are exact."""
    topic, records = f"{sender}-{codec}-{uuid.uuid4().hex[:6]}", wanted(100)

    assert SENDERS[sender](bootstrap, topic, records, codec) == list(range(100))
    for name, read in READERS.items():
        if name != "kafka_python" or codec in PURE:
            assert read(bootstrap, topic, 100) == records, name


def test_a_group_goes_on_where_it_committed(bootstrap: str) -> None:
    """Dense offsets in groups: what one member committed another goes on from, record by record."""
    topic, records = f"group-{uuid.uuid4().hex[:6]}", wanted(20)
    send_confluent(bootstrap, topic, records, "none")
    seen: list[int] = []
    for _ in range(2):
        consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        })  # fmt: skip
        consumer.subscribe([topic])
        deadline, mine = time.monotonic() + PATIENCE_S, 0
        while mine < 10 and time.monotonic() < deadline:
            one = consumer.poll(0.5)
            if one is not None and one.error() is None:
                seen.append(one.offset())
                mine += 1
        consumer.commit(asynchronous=False, offsets=[TopicPartition(topic, 0, seen[-1] + 1)])
        consumer.close()

    assert seen == list(range(20))
