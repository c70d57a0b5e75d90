"""Transactions with unmodified clients: committed or aborted as a whole, the zombie fenced (issue 28, must show 1)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from aiokafka.structs import OffsetAndMetadata as AioOffset
from aiokafka.structs import TopicPartition as AioPartition
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.structs import OffsetAndMetadata as PythonOffset

from kafka2011.testing import BrokerProcess
from since2011.client.admin import Admin
from tests.waiting import PATIENCE_S

OPTIONS = {"modern.port": 0, "group.initial.rebalance.delay.ms": 0}
N_VALUES = 50


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker that makes modern topics."""
    with BrokerProcess(options=OPTIONS) as broker:
        yield f"127.0.0.1:{broker.modern_port}"


@pytest.fixture
def topic(bootstrap: str) -> str:
    """Two partitions nobody else writes to."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap) as admin:
        admin.create(name, partitions=2)
    return name


def values(word: str) -> list[bytes]:
    return [b"%s-%d" % (word.encode(), number) for number in range(N_VALUES)]


def confluent(bootstrap: str, topic: str, group: str) -> None:
    """Commit one transaction, abort one, commit one with an offset."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"confluent-{topic}"})
    producer.init_transactions(PATIENCE_S)
    for word in ("one", "never", "two"):
        producer.begin_transaction()
        for number, value in enumerate(values(word)):
            producer.produce(topic, value, partition=number % 2)
        producer.flush()
        if word == "two":
            consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
            metadata = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction([TopicPartition(topic, 0, 17)], metadata, PATIENCE_S)
            consumer.close()
        (producer.abort_transaction if word == "never" else producer.commit_transaction)(PATIENCE_S)


def kafka_python(bootstrap: str, topic: str, group: str) -> None:
    """The same."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"python-{topic}")
    producer.init_transactions()
    for word in ("one", "never", "two"):
        producer.begin_transaction()
        for number, value in enumerate(values(word)):
            producer.send(topic, value, partition=number % 2)
        producer.flush()
        if word == "two":
            producer.send_offsets_to_transaction({PythonPartition(topic, 0): PythonOffset(17, "", -1)}, group)
        (producer.abort_transaction if word == "never" else producer.commit_transaction)()
    producer.close()


def aiokafka(bootstrap: str, topic: str, group: str) -> None:
    """The same."""

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"aio-{topic}")
        await producer.start()
        for word in ("one", "never", "two"):
            await producer.begin_transaction()
            for number, value in enumerate(values(word)):
                await producer.send(topic, value, partition=number % 2)
            await producer.flush()
            if word == "two":
                await producer.send_offsets_to_transaction({AioPartition(topic, 0): AioOffset(17, "")}, group)
            await (producer.abort_transaction() if word == "never" else producer.commit_transaction())
        await producer.stop()

    asyncio.run(run())


PRODUCERS = [confluent, kafka_python, aiokafka]


def read_confluent(bootstrap: str, topic: str, isolation: str, n: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": isolation,
                         "enable.partition.eof": True})  # fmt: skip
    consumer.assign([TopicPartition(topic, index, 0) for index in range(2)])
    found: list[bytes] = []
    while len(found) < n:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"{len(found)} of {n} values"
        if message.error() is None:
            found.append(message.value())
    consumer.close()
    return found


def read_kafka_python(bootstrap: str, topic: str, isolation: str, n: int) -> list[bytes]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level=isolation,
        consumer_timeout_ms=int(PATIENCE_S * 1000),
    )  # fmt: skip
    consumer.assign([PythonPartition(topic, index) for index in range(2)])
    found = [next(consumer).value for _ in range(n)]
    consumer.close()
    return found


def read_aiokafka(bootstrap: str, topic: str, isolation: str, n: int) -> list[bytes]:
    async def run() -> list[bytes]:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest",
                                    isolation_level=isolation)  # fmt: skip
        await consumer.start()
        consumer.assign([AioPartition(topic, index) for index in range(2)])
        found = [(await asyncio.wait_for(consumer.getone(), PATIENCE_S)).value for _ in range(n)]
        await consumer.stop()
        return found

    return asyncio.run(run())


READERS = [read_confluent, read_kafka_python, read_aiokafka]


@pytest.mark.parametrize("produce", PRODUCERS)
def test_what_is_committed_is_seen_and_nothing_else(
    bootstrap: str, topic: str, produce: Callable[[str, str, str], None]
) -> None:
    """Two partitions and an offset, by every client; each reader sees the committed, uncommitted readers all."""
    group = f"g-{topic}"
    produce(bootstrap, topic, group)

    for read in READERS:
        committed = read(bootstrap, topic, "read_committed", 2 * N_VALUES)
        everything = read(bootstrap, topic, "read_uncommitted", 3 * N_VALUES)
        assert sorted(values("one") + values("two")) == sorted(committed), read.__name__
        assert sorted(values("one") + values("two") + values("never")) == sorted(everything), read.__name__
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (stored,) = consumer.committed([TopicPartition(topic, 0)], PATIENCE_S)
    consumer.close()
    assert stored.offset == 17


def test_a_zombie_of_confluent_is_fenced(bootstrap: str, topic: str) -> None:
    """The older instance's commit fails for good, and what it wrote is not seen."""
    settings = {"bootstrap.servers": bootstrap, "transactional.id": f"zombie-{topic}"}
    zombie, newer = Producer(settings), Producer(settings)
    zombie.init_transactions(PATIENCE_S)
    zombie.begin_transaction()
    zombie.produce(topic, b"zombie's", partition=0)
    zombie.flush()
    newer.init_transactions(PATIENCE_S)
    newer.begin_transaction()
    newer.produce(topic, b"newer's", partition=0)
    newer.commit_transaction(PATIENCE_S)
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(PATIENCE_S)

    assert refused.value.args[0].fatal()
    assert read_confluent(bootstrap, topic, "read_committed", 1) == [b"newer's"]


def test_a_zombie_of_aiokafka_is_fenced(bootstrap: str, topic: str) -> None:
    """ProducerFenced, as on a real broker."""

    async def run() -> None:
        zombie = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"zombie-{topic}")
        newer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"zombie-{topic}")
        await zombie.start()
        await zombie.begin_transaction()
        await zombie.send_and_wait(topic, b"zombie's", partition=0)
        await newer.start()
        with pytest.raises(ProducerFenced):
            await zombie.commit_transaction()
        for each in (zombie, newer):
            await each.stop()

    asyncio.run(run())
