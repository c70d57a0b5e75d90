"""Kafka Streams with exactly_once_v2 on our broker, under kill -9 of both (issue 28, must show 1)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka2011.testing import BrokerProcess
from since2011.client.admin import Admin
from tests.interop.since2011.real_kafka import jars_with
from tests.interop.since2011.test_streams import LINES, WordCount, write
from tests.waiting import until

OPTIONS = {"modern.port": 0, "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500}


class Counts:
    """Every count of every word, in the order of its partition, as readers of committed records see it."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "isolation.level": "read_committed"}
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition("counts", index, 0) for index in range(2)])
        self.of: dict[str, list[int]] = {}

    def read(self) -> Counter[str]:
        """What is counted by now."""
        for message in self._consumer.consume(500, 0.2):
            if message.error() is None:
                self.of.setdefault(message.key().decode(), []).append(int.from_bytes(message.value(), "big"))
        return Counter({word: counts[-1] for word, counts in self.of.items()})

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.timeout(400)
def test_every_word_is_counted_exactly_once_under_kills(tmp_path: Path) -> None:
    """Streams and broker killed: each word's counts are 1, 2, 3 … n, none missing, none twice."""
    jars_with("kafka-streams")
    with BrokerProcess(tmp_path / "broker", OPTIONS) as broker:
        bootstrap = f"127.0.0.1:{broker.modern_port}"
        with Admin(bootstrap) as admin:
            admin.create("text", partitions=2)
            admin.create("counts", partitions=2)
        counts = Counts(bootstrap)
        expected: Counter[str] = Counter()

        def write_and_expect(times: int) -> None:
            write(bootstrap, LINES * times)
            for word, n in Counter(" ".join(LINES).split()).items():
                expected[word] += n * times

        write_and_expect(40)
        killed = WordCount(bootstrap, tmp_path, "exactly_once_v2")
        until(lambda: sum(counts.read().values()) > 20, "counting has begun", timeout_s=170)
        killed.kill()
        write_and_expect(40)
        with WordCount(bootstrap, tmp_path, "exactly_once_v2"):
            until(lambda: sum(counts.read().values()) > 450, "the new process goes on", timeout_s=170)
            write_and_expect(40)
            broker.kill()
            broker.restart()
            until(lambda: counts.read() == expected, "every word is counted", timeout_s=170)
        counts.read()
        counts.close()

    assert {word: list(range(1, n + 1)) for word, n in expected.items()} == counts.of
