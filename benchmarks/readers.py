"""Consumers beside each other: ours, kafka-python, aiokafka and confluent-kafka read one topic, in shuffled rounds.

    python -m benchmarks.readers                           # a broker of ours is started
    python -m benchmarks.readers --bootstrap HOST:PORT     # any broker, a real Kafka too

Each reader is a process of its own and is measured from the first record it was given to the last: CPU seconds of the
whole process, its threads included, per million records, and records per second. Noise of the machine moves the second
more than the first. No group, no commits: records and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

import click

from kafka2011.child import die_with_parent
from kafka2011.testing import BrokerProcess
from kafka2011.types import TopicPartition
from since2011.client.admin import Admin

SIZE, PARTITIONS, AT_MOST = 200, 4, 500


class Meter:
    """Counts records, from the first on, and says what they cost."""

    def __init__(self, n_records: int) -> None:
        self._wanted, self._seen = n_records, 0
        self._since: tuple[float, float, int] | None = None

    def saw(self, n_records: int) -> bool:
        """So many more; whether they are all there."""
        self._seen += n_records
        if self._since is None and n_records:
            self._since = (time.perf_counter(), _cpu_s(), self._seen)
        return self._seen >= self._wanted

    def say(self) -> None:
        """One line of JSON."""
        assert self._since is not None
        began, cpu, before = self._since
        n = self._seen - before
        per_million = (_cpu_s() - cpu) / n * 1e6
        print(json.dumps({"rate": n / (time.perf_counter() - began), "cpu_s": per_million}))


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ours(bootstrap: str, topic: str, meter: Meter) -> None:
    """Our consumer."""
    from consumers.group_protocol.member import Consumer

    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        while True:
            records = consumer.poll(1.0)
            for record in records:
                assert record.value is not None and len(record.value) == SIZE
            if meter.saw(len(records)):
                return


def kafka_python(bootstrap: str, topic: str, meter: Meter) -> None:
    """kafka-python: pure Python."""
    import kafka

    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", max_poll_records=AT_MOST, enable_auto_commit=False
    )
    consumer.assign([kafka.TopicPartition(topic, number) for number in range(PARTITIONS)])
    while True:
        found = consumer.poll(1000)
        for records in found.values():
            for record in records:
                assert len(record.value) == SIZE
        if meter.saw(sum(map(len, found.values()))):
            return


def aiokafka(bootstrap: str, topic: str, meter: Meter) -> None:
    """aiokafka: Python around a compiled decoder."""
    import aiokafka as library

    async def read() -> None:
        consumer = library.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([library.TopicPartition(topic, number) for number in range(PARTITIONS)])
        enough = False
        while not enough:
            found = await consumer.getmany(timeout_ms=1000, max_records=AT_MOST)
            for records in found.values():
                for record in records:
                    assert len(record.value) == SIZE
            enough = meter.saw(sum(map(len, found.values())))
        await consumer.stop()

    asyncio.run(read())


def confluent_kafka(bootstrap: str, topic: str, meter: Meter) -> None:
    """confluent-kafka: librdkafka, in C, with threads of its own."""
    import confluent_kafka as library

    consumer = library.Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([library.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    while True:
        records = consumer.consume(AT_MOST, 1.0)
        for record in records:
            assert len(record.value()) == SIZE
        if meter.saw(len(records)):
            return


READERS = {"ours": ours, "kafka-python": kafka_python, "aiokafka": aiokafka, "confluent-kafka": confluent_kafka}


def fill(bootstrap: str, topic: str, n_records: int, codec: str) -> None:
    """Write the topic, as librdkafka batches."""
    from confluent_kafka import Producer

    with Admin(bootstrap) as admin:
        admin.create(topic, partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": codec})
    payload = os.urandom(SIZE // 2).hex().encode()
    for number in range(n_records):
        while True:
            try:
                producer.produce(topic, payload, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(120):
        raise SystemExit("not everything was taken")


def measure(name: str, bootstrap: str, topic: str, n_records: int) -> dict[str, float]:
    """One reader, in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.readers", "--as", name, "--bootstrap", bootstrap]
    done = subprocess.run(
        [*words, "--topic", topic, "--records", str(n_records)],
        capture_output=True, text=True, timeout=300, check=True, cwd=Path(__file__).parents[1],
        preexec_fn=die_with_parent,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(found: dict[str, list[dict[str, float]]]) -> list[str]:
    """The medians, and how many times ours is cheaper: the median of the rounds' ratios, with their range."""
    lines = ["| reader | records/s | CPU s per million | times ours |", "|---|---:|---:|---|"]
    mine = [round_["cpu_s"] for round_ in found["ours"]]
    for name, rounds in found.items():
        rate, cpu = (statistics.median(one[what] for one in rounds) for what in ("rate", "cpu_s"))
        ratios = [one["cpu_s"] / own for one, own in zip(rounds, mine, strict=True)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
        lines.append(f"| {name} | {rate:,.0f} | {cpu:.2f} | {spread} |")
    return lines


@click.command()
@click.option("--bootstrap", default=None, metavar="HOST:PORT", help="Of any broker; default: one of ours is started.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--records", default=400_000, show_default=True)
@click.option("--codec", default="none", show_default=True)
@click.option("--as", "name", type=click.Choice(list(READERS)), help="Be one of the readers.")
@click.option("--topic", hidden=True)
def main(bootstrap: str | None, rounds: int, records: int, codec: str, name: str | None, topic: str | None) -> None:
    """Read beside each other; a row for each reader."""
    if name is not None:
        assert bootstrap is not None and topic is not None
        meter = Meter(records)
        READERS[name](bootstrap, topic, meter)
        meter.say()
        return
    with ExitStack() as stack:
        if bootstrap is None:
            broker = stack.enter_context(BrokerProcess(options={"modern.port": 0}))
            bootstrap = f"127.0.0.1:{broker.modern_port}"
        topic = f"readers-{uuid.uuid4().hex[:6]}"
        fill(bootstrap, topic, records, codec)
        found: dict[str, list[dict[str, float]]] = {one: [] for one in READERS}
        for _ in range(rounds):
            for one in random.sample(list(READERS), len(READERS)):
                found[one].append(measure(one, bootstrap, topic, records))
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
