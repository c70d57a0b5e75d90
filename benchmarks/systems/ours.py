"""kafka2011 itself: a broker process, the asynchronous producer, the consumer by offset, the consumer in a group."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.system import MESSAGE_SIZE, PATIENCE_S, Cell, Stopwatch, System
from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.producer import Producer
from kafka2011.testing import BrokerProcess
from kafka2011.wire import read_set

ENTRY = MESSAGE_SIZE + 10
FETCH_SIZE = 512 << 10
"""Hundreds of kilobytes, as in the paper (§3.1), and as the group consumer asks for by default."""


class Kafka2011(System):
    name = "kafka2011"
    note = "flush every 10,000 messages or 50 ms, CRC checked on both sides, the product's own clients"
    options: ClassVar[dict[str, object]] = {
        "log.flush.interval": 10_000,
        "log.default.flush.interval.ms": 50,
        "log.default.flush.scheduler.interval.ms": 10,
    }

    def cells(self, scale: float) -> list[Cell]:
        return [
            Cell("produce", 1, int(400_000 * scale)),
            Cell("produce", 10, int(600_000 * scale)),
            Cell("produce", 200, int(1_200_000 * scale)),
            Cell("produce", 50, int(1_200_000 * scale)),
            Cell("consume", 0, int(1_200_000 * scale)),
            *([Cell("group", 0, int(1_200_000 * scale))] if self._has_zookeeper() else []),
        ]

    def _has_zookeeper(self) -> bool:
        """The group consumer needs one; the embedded server needs Java."""
        try:
            from zk_registry.java import find_java

            find_java()
        except (ImportError, Kafka2011Error):
            return False
        return True

    def stop(self) -> None:
        super().stop()
        if self.hint:
            self._zookeeper.stop()

    def start(self, directory: Path) -> None:
        options = self.options
        if self._has_zookeeper():
            from zk_registry.embedded import EmbeddedZooKeeper

            self._zookeeper = EmbeddedZooKeeper(data_dir=directory / "zookeeper")
            self._zookeeper.start()
            self.hint = self._zookeeper.connect
            options = options | {"zk.connect": self.hint, "brokerid": 0}
        self.broker = BrokerProcess(directory / "data", options)
        self.broker.start()
        self.port = self.broker.port
        assert isinstance(self.broker.process, subprocess.Popen)
        self.processes = [self.broker.process]

    def produce(self, topic: str, payloads: Sequence[bytes], batch: int) -> float:
        watch = Stopwatch()
        with Producer(f"127.0.0.1:{self.port}", batch_size=batch) as producer:
            send = producer.send
            if batch == 1:
                for payload in payloads:
                    send(topic, payload)
            else:
                for start in range(0, len(payloads), batch):
                    send(topic, payloads[start : start + batch])
        with BrokerConnection("127.0.0.1", self.port) as connection:
            # The end is when a consumer could have read everything: all of it is on disk.
            while connection.offsets(topic, 0)[0] < ENTRY * len(payloads):
                time.sleep(0.002)
        return watch.seconds()

    def consume(self, topic: str, messages: int) -> float:
        watch = Stopwatch()
        offset = size = 0
        with BrokerConnection("127.0.0.1", self.port) as connection:
            while size < MESSAGE_SIZE * messages:
                for message in read_set(connection.fetch(topic, 0, offset, FETCH_SIZE), offset):
                    size += len(message.payload)
                offset = message.next_offset
        return watch.seconds()

    def group(self, topic: str, messages: int) -> float:
        """One consumer of a group (Algorithm 1), from its first message to its last, without joining and leaving."""
        from consumers import Consumer

        consumer = Consumer(self.hint, f"bench-{os.getpid()}", timeout_s=PATIENCE_S)
        (stream,) = consumer.create_message_streams(topic, 1)
        size = 0
        for seen, message in enumerate(stream, 1):
            if seen == 1:
                watch = Stopwatch()
            size += len(message.payload)
            if seen == messages:
                break
        seconds = watch.seconds()
        consumer.close()
        assert size == MESSAGE_SIZE * messages
        return seconds
