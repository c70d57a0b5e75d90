"""``kafka2011 consume --modern``: print records through the modern port of any brokers, alone or as one of a group."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click

from consumers.group_protocol.member import Consumer
from kafka2011.cli.output import counted, fail, host_and_port, note
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Entry, Journal
from kafka2011.types import TopicPartition
from since2011.cli.record_format import Render
from since2011.client.fetch.events import BrokerSilent

_POLL_S = 0.2
_AT_MOST = 500


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read, from where, and until when."""

    topic: str
    partition: int | None
    where: str
    """``begin``, ``end``, an offset, ``-N`` before the end, ``@MS``; with a group it holds where nothing is stored."""
    count: int | None
    timeout_s: float | None
    committed: bool
    group: str | None


def consume_modern(modern: str, reading: Reading, render: Render) -> None:
    """Print until there are enough or nothing comes any more."""
    out = _Output(render, reading.count)
    try:
        with _consumer(modern, reading) as consumer:
            if reading.group is None:
                _go_to(consumer, reading)
            else:
                consumer.subscribe([reading.topic])
            _print(consumer, reading, out)
    except KeyboardInterrupt:
        note("")
    except Kafka2011Error as error:
        fail(f"{counted(out.n_records, 'record')} of {reading.topic}, then: {error}")
    by = f" by group {reading.group}" if reading.group else ""
    note(f"{counted(out.n_records, 'record')} of {reading.topic}{by}")


class _Output:
    """Writes records to stdout."""

    def __init__(self, render: Render, count: int | None) -> None:
        self.render, self._count = render, count
        self.n_records = 0

    @property
    def room(self) -> int:
        """How many more are wanted now."""
        return _AT_MOST if self._count is None else min(_AT_MOST, self._count - self.n_records)


def _tell_of_silence(entry: Entry) -> None:
    """Say why nothing comes."""
    if isinstance(entry.event, BrokerSilent):
        note(f"waiting: {entry.event.reason}")


def _consumer(modern: str, reading: Reading) -> Consumer:
    journal = Journal()
    journal.subscribe(_tell_of_silence)
    is_end = reading.where in ("end", "largest", "latest")
    return Consumer(
        bootstrap_servers=[host_and_port(part, 9192) for part in modern.split(",")],
        group_id=reading.group,
        client_id="kafka2011-consume",
        auto_offset_reset="latest" if is_end else "earliest",
        isolation_level="read_committed" if reading.committed else "read_uncommitted",
        allow_auto_create_topics=False,
        auto_commit_interval_ms=1_000,
        journal=journal,
    )


def _print(consumer: Consumer, reading: Reading, out: _Output) -> None:
    last = SYSTEM_CLOCK.monotonic()
    while out.room and (reading.timeout_s is None or SYSTEM_CLOCK.monotonic() - last < reading.timeout_s):
        wait_s = _POLL_S if reading.timeout_s is None else min(_POLL_S, reading.timeout_s)
        records = consumer.poll(wait_s, out.room)
        for record in records:
            sys.stdout.buffer.write(out.render(record.topic, record.partition, record))
        out.n_records += len(records)
        if records:
            sys.stdout.buffer.flush()
            last = SYSTEM_CLOCK.monotonic()


def _go_to(consumer: Consumer, reading: Reading) -> None:
    """Assign every partition, or the one, at the place asked for."""
    known = consumer.partitions_for(reading.topic, 10.0)
    numbers = [one.partition for one in known]
    if reading.partition is not None and reading.partition not in numbers:
        fail(f"{reading.topic} has no partition {reading.partition}; it has {', '.join(map(str, numbers))}")
    partitions = known if reading.partition is None else [TopicPartition(reading.topic, reading.partition)]
    offsets = _places(consumer, partitions, reading.where)
    consumer.assign(partitions)
    for partition, offset in offsets.items():
        consumer.seek(partition, offset)


def _places(consumer: Consumer, partitions: list[TopicPartition], where: str) -> dict[TopicPartition, int]:
    if where in ("begin", "beginning", "smallest", "earliest"):
        return consumer.beginning_offsets(partitions)
    ends = consumer.end_offsets(partitions)
    if where in ("end", "largest", "latest"):
        return ends
    try:
        if where.startswith("@"):
            found = consumer.offsets_for_times(dict.fromkeys(partitions, int(where[1:])))
            return {one: ends[one] if at is None else at.offset for one, at in found.items()}
        number = int(where)
    except ValueError:
        raise click.UsageError(f"{where!r}: begin, end, an offset, -N or @MILLISECONDS") from None
    if number >= 0:
        return dict.fromkeys(partitions, number)
    begins = consumer.beginning_offsets(partitions)
    return {one: max(begins[one], ends[one] + number) for one in partitions}
