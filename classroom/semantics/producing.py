"""A producer under faults: what acks, idempotence and requests in flight are worth."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from classroom.semantics.link import Fault, Link
from classroom.semantics.verdict import Verdict, judge
from consumers.group_protocol.member import Consumer
from kafka2011.errors import Kafka2011Error
from kafka2011.testing import BrokerProcess
from kafka2011.types import TopicPartition
from since2011.client.admin import Admin
from since2011.producer import Producer

_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Setup:
    """A row of the table."""

    acks: str
    idempotent: bool
    in_flight: int


SETUPS = [
    Setup(acks, idempotent, in_flight)
    for acks, idempotent in (("0", False), ("1", False), ("all", False), ("all", True))
    for in_flight in (1, 5)
]


def faults(records: int, rounds: int) -> dict[int, Fault]:
    """Which request meets which fault: the same for every row. One record travels in each request."""
    kinds = (Fault.LOST_REQUEST, Fault.LOST_ANSWER, Fault.CRASH)
    apart = max(1, records // (len(kinds) * rounds + 1))
    return {apart * (number + 1): kinds[number % len(kinds)] for number in range(len(kinds) * rounds)}


class Bench:
    """One broker behind a faulty link. A context manager."""

    def __enter__(self) -> Bench:
        self.link = Link(self._crash)
        # The broker lives no longer than the thread that started it.
        self._keeper = ThreadPoolExecutor(1)
        options = {"modern.port": 0, "log.format": "modern", "modern.advertised.port": self.link.port}
        self._broker = BrokerProcess(options=options).start()
        assert self._broker.modern_port is not None
        self.link.target = self._broker.modern_port
        self.bootstrap = f"127.0.0.1:{self.link.port}"
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()
        with contextlib.suppress(RuntimeError):
            self._broker.stop()
        self._keeper.shutdown()

    def _crash(self) -> None:
        self._keeper.submit(self._kill_and_restart).result()

    def _kill_and_restart(self) -> None:
        self._broker.kill()
        self._broker.restart()

    def topic(self, name: str) -> TopicPartition:
        """A new topic of one partition."""
        with Admin(self.bootstrap) as admin:
            admin.create(name, partitions=1)
        return TopicPartition(name, 0)

    def numbers(self, place: TopicPartition, *, committed: bool = False) -> list[int]:
        """The numbers in a partition, in its order."""
        isolation = "read_committed" if committed else "read_uncommitted"
        with Consumer({"bootstrap.servers": self.bootstrap, "isolation.level": isolation}) as consumer:
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            found: list[int] = []
            while consumer.position(place) < end:
                found += [int(record.value or b"") for record in consumer.poll(1.0)]
            return found


def produce(bench: Bench, setup: Setup, records: int, rounds: int) -> Verdict:
    """Send numbers through the faults with one set of settings, and judge what is stored."""
    name = f"acks-{setup.acks}-{'idempotent' if setup.idempotent else 'plain'}-{setup.in_flight}"
    place = bench.topic(name)
    settings = {
        "bootstrap.servers": bench.bootstrap,
        "acks": setup.acks,
        "enable.idempotence": setup.idempotent,
        "max.in.flight.requests.per.connection": setup.in_flight,
        "batch.size": 0,
        "retry.backoff.ms": 20,
        "reconnect.backoff.ms": 20,
    }
    with Producer(settings) as producer:
        producer.partitions_for(place.topic)
        bench.link.plan(faults(records, rounds))
        for number in range(records):
            with contextlib.suppress(Kafka2011Error):
                producer.send(place.topic, b"%d" % number, partition=0)
        producer.flush(_PATIENCE_S)
    bench.link.plan({})
    return judge(records, bench.numbers(place))


def producing(bench: Bench, records: int, rounds: int) -> Iterator[tuple[Setup, Verdict]]:
    """Row after row."""
    for setup in SETUPS:
        yield setup, produce(bench, setup, records, rounds)
