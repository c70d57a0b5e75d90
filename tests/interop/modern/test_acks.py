"""A failed fsync as confluent-kafka (librdkafka) is told of it. Issue 19 A1: the recipe it was seen with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Producer

from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import decode_set
from tests.interop.modern.conftest import OPTIONS


def test_the_third_message_is_not_reported_delivered(tmp_path: Path) -> None:
    """A1: ``log.flush.before_fsync=raise:EIO@3``, acks=all: the third and all after it name the storage error."""
    seldom = {"num.partitions": 1, "log.default.flush.interval.ms": 600_000, "log.flush.interval": 1_000_000}
    failing = {"KAFKA2011_FAILPOINTS": "log.flush.before_fsync=raise:EIO@3"}
    reports: list[int] = []

    def reported(error: KafkaError | None, _: Any) -> None:
        reports.append(0 if error is None else error.code())

    with BrokerProcess(tmp_path, OPTIONS | seldom, environ=failing) as broker:
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.modern_port}", "acks": "all", "retries": 0})
        for n in range(5):
            producer.produce("t", b"message %d" % n, on_delivery=reported)
            assert producer.flush(60) == 0
        with BrokerConnection(broker.host, broker.port) as connection:
            visible = [message.payload for message in decode_set(connection.fetch("t", 0, 0))]

    assert reports == [0, 0] + [KafkaError.KAFKA_STORAGE_ERROR] * 3
    assert visible == [b"message 0", b"message 1"]
