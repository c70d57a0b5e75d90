"""kafka2011 itself: a broker process, the asynchronous producer, the consumer by offset, the consumer in a group."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.system import Cell, Stopwatch, System, Timing
from kafka2011.client import BrokerConnection
from kafka2011.producer import Producer
from kafka2011.testing import BrokerProcess
from kafka2011.wire import decode_set, valid_bytes

ENTRY = 210


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
        ]

    def start(self, directory: Path) -> None:
        self.broker = BrokerProcess(directory / "data", self.options)
        self.broker.start()
        self.port = self.broker.port
        assert isinstance(self.broker.process, subprocess.Popen)
        self.processes = [self.broker.process]

    def produce(self, topic: str, payloads: Sequence[bytes], batch: int) -> Timing:
        sets = [payloads[start : start + batch] for start in range(0, len(payloads), batch)] if batch > 1 else payloads
        watch = Stopwatch()
        tenth = max(len(sets) // 10, 1)
        with Producer(f"127.0.0.1:{self.port}", batch_size=batch) as producer:
            send = producer.send
            for start in range(0, len(sets), tenth):
                for messages in sets[start : start + tenth]:
                    send(topic, messages)
                watch(min(start + tenth, len(sets)) * batch)
        with BrokerConnection("127.0.0.1", self.port) as connection:
            # The end is when a consumer could have read everything: all of it is on disk.
            while connection.offsets(topic, 0)[0] < ENTRY * len(payloads):
                time.sleep(0.002)
        watch(len(payloads))
        return watch.timing

    def consume(self, topic: str, messages: int) -> Timing:
        watch = Stopwatch()
        offset = seen = size = 0
        next_point = messages // 10
        with BrokerConnection("127.0.0.1", self.port) as connection:
            while seen < messages:
                data = connection.fetch(topic, 0, offset, 1 << 20)
                for message in decode_set(data, offset):
                    seen += 1
                    size += len(message.payload)
                offset += valid_bytes(data)
                if seen >= next_point:
                    watch(seen)
                    next_point += messages // 10
        assert size == 200 * messages
        return watch.timing
