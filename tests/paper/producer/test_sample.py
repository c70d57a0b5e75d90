"""The paper's sample producer, against a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.producer import Audit, Codec, Message, MessageSet, Producer
from kafka2011.testing import BrokerProcess
from kafka2011.wire import decode_set, valid_bytes
from tests.waiting import until


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(options={"log.flush.interval": 1, "num.partitions": 1}) as process:
        yield process


def stored(broker: BrokerProcess, topic: str, n_messages: int) -> list[bytes]:
    """The payloads of partition 0, once so many are there."""

    def read() -> list[bytes]:
        payloads, offset = [], 0
        while data := connection.fetch(topic, 0, offset):
            payloads += [message.payload for message in decode_set(data, offset)]
            offset += valid_bytes(data)
        return payloads

    with BrokerConnection(broker.host, broker.port) as connection:
        until(lambda: len(read()) >= n_messages, f"{n_messages} messages of {topic} are stored")
        return read()


def test_the_sample_producer_code_runs(broker: BrokerProcess) -> None:
    """§3: the sample producer, as printed apart from Python's case."""
    producer = Producer(broker.address)
    message = Message(b"test message str")
    set = MessageSet(message)
    producer.send("topic1", set)
    producer.close()

    assert stored(broker, "topic1", 1) == [b"test message str"]


def test_a_set_of_messages_goes_in_a_single_publish_request(broker: BrokerProcess) -> None:
    """§3: "for efficiency, the producer can send a set of messages in a single publish request"."""
    payloads = [b"message %d" % i for i in range(50)]
    with Producer(broker.address, sync=True) as producer:
        producer.send("single", MessageSet(payloads))

        assert producer.counters.requests == 1
    assert stored(broker, "single", 50) == payloads


def test_messages_of_a_partition_stay_in_order(broker: BrokerProcess) -> None:
    """§3.3: "messages from a single partition are delivered to a consumer in order"."""
    payloads = [b"%d" % i for i in range(20_000)]
    with Producer(broker.address, batch_size=50) as producer:
        for start in range(0, len(payloads), 7):
            producer.send("ordered", payloads[start : start + 7])

    assert stored(broker, "ordered", len(payloads)) == payloads


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_compressed_sets_are_stored_and_read_back(broker: BrokerProcess, codec: Codec) -> None:
    """§4: "each producer can compress a set of messages and send it to the broker"."""
    payloads = [b"profile view %d" % i for i in range(1000)]
    topic = f"compressed-{codec.name.lower()}"
    with Producer(broker.address, codec=codec) as producer:
        producer.send(topic, payloads)

    assert stored(broker, topic, 1000) == payloads


def test_the_audit_topic_accounts_for_every_message(broker: BrokerProcess) -> None:
    """§4: the producer's monitoring events record how many messages it published per topic and window."""
    with Producer(broker.address, audit=Audit(lambda payload: int(payload), window_ms=100)) as producer:
        producer.send("audited", [b"%d" % i for i in range(1000)])
        producer.flush(60)

    events = [json.loads(event) for event in stored(broker, "audit", 10)]
    assert sorted((e["window_start_ms"], e["count"]) for e in events) == [(start, 100) for start in range(0, 1000, 100)]
