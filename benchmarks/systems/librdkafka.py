"""librdkafka, the C client of today's Kafka, producing into the mock broker inside it: nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.system import Cell, Stopwatch, System


class Librdkafka(System):
    name = "librdkafka + mock broker"
    note = "confluent-kafka into its own mock broker in the same process: no storage, acks=1"

    def missing(self) -> str | None:
        try:
            import confluent_kafka  # noqa: F401
        except ImportError:
            return "confluent-kafka is not installed"
        return None

    def cells(self, scale: float) -> list[Cell]:
        return [Cell("produce", 1, int(50_000 * scale)), Cell("produce", 50, int(250_000 * scale))]

    def produce(self, topic: str, payloads: Sequence[bytes], batch: int) -> float:
        from confluent_kafka import Producer

        producer = Producer(
            {
                "test.mock.num.brokers": 1,
                "bootstrap.servers": "mock",
                "acks": 1,
                "batch.num.messages": batch,
                "linger.ms": 5 if batch > 1 else 0,
                "queue.buffering.max.messages": 1_000_000,
                "log_level": 0,
            }
        )
        producer.produce(topic, b"warm up")
        producer.flush()
        watch = Stopwatch()
        for payload in payloads:
            while True:
                try:
                    producer.produce(topic, payload)
                    break
                except BufferError:
                    producer.poll(0.01)
        producer.flush()
        return watch.seconds()
