"""A modern topic under kill -9: what was acknowledged is there, in order, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka2011.testing import BrokerProcess
from tests.waiting import until

OPTIONS = {"modern.port": 0, "log.format": "modern"}


@pytest.mark.parametrize("settings", [{"flush.messages": "1"}, {"segment.bytes": "20000"}], ids=["flushed", "rolling"])
def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path: Path, settings: dict[str, str]) -> None:
    """Killed in the middle of a flood, twice: every acknowledged record is at the offset that was told (issue 25.5)."""
    acknowledged: dict[int, bytes] = {}
    with BrokerProcess(tmp_path / "data", OPTIONS) as broker:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.modern_port}"})
        admin.create_topics([NewTopic("flood", 1, 1, config=settings)])["flood"].result(30)
        for turn in range(2):
            before = len(acknowledged)
            producer = Producer(
                {"bootstrap.servers": f"127.0.0.1:{broker.modern_port}", "acks": "all", "linger.ms": 1, "retries": 0}
            )

            def told(error: object, message: object) -> None:
                if error is None:
                    acknowledged[message.offset()] = message.value()  # type: ignore[attr-defined]

            def flood(producer: Producer = producer, turn: int = turn, before: int = before) -> bool:
                for number in range(50):
                    producer.produce("flood", b"%d-%d" % (turn, number), on_delivery=told)
                producer.poll(0.01)
                return len(acknowledged) - before > 500

            until(flood, "five hundred records are acknowledged")
            broker.kill()
            producer.purge()
            producer.flush(5)
            broker.restart()
        consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{broker.modern_port}", "group.id": "g"})
        consumer.assign([TopicPartition("flood", 0, 0)])
        found: dict[int, bytes] = {}

        def read() -> bool:
            for message in consumer.consume(1000, 0.1):
                assert message.offset() not in found
                found[message.offset()] = message.value()
            return len(found) > max(acknowledged)

        until(read, "everything is read")
        consumer.close()

    assert {offset: found[offset] for offset in acknowledged} == acknowledged
