"""The consumer protocol inside a group: subscriptions to the leader, assignments back.

See docs/group-protocol.md. The coordinator carries these bytes unopened.

    subscription  version topics user_data   1+ owned   2+ generation   3+ rack
    assignment    version partitions user_data
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from kafka2011.types import TopicPartition
from since2011.wire.opaque import Reader, Writer

PROTOCOL_TYPE = "consumer"
NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants, and what it has from before."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None

    def encode(self, version: int = 3) -> bytes:
        writer = Writer().i16(version).i32(len(self.topics))
        for topic in self.topics:
            writer.string(topic)
        writer.blob(self.user_data)
        if version >= 1:
            _write_partitions(writer, self.owned)
        if version >= 2:
            writer.i32(self.generation)
        if version >= 3:
            writer.nullable(self.rack)
        return writer.bytes()

    @classmethod
    def decode(cls, data: bytes) -> Subscription:
        """Read any version, newer ones as far as they are known; ValueError when the bytes are not one."""
        reader = Reader(data)
        version = reader.i16()
        topics = tuple(reader.string() for _ in range(reader.count()))
        user_data = reader.nullable_blob()
        owned = _read_partitions(reader) if version >= 1 else ()
        generation = reader.i32() if version >= 2 else NO_GENERATION
        rack = reader.nullable() if version >= 3 else None
        if not owned and user_data and version < 2:
            owned, generation = _sticky_user_data(user_data)
        return cls(topics, user_data, owned, generation, rack)


def encode_assignment(partitions: Iterable[TopicPartition], user_data: bytes | None = b"") -> bytes:
    """Assignment version 0, which every client reads."""
    return _write_partitions(Writer().i16(0), partitions).blob(user_data).bytes()


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Zero bytes are legal and mean nothing."""
    if not data:
        return ()
    reader = Reader(data)
    reader.i16()
    return _read_partitions(reader)


def topics_of(metadata: bytes) -> frozenset[str] | None:
    """The topics a subscription names, or None when the bytes are not a subscription."""
    try:
        return frozenset(Subscription.decode(metadata).topics)
    except ValueError:
        return None


def sticky_user_data(owned: Iterable[TopicPartition], generation: int) -> bytes:
    """What the eager sticky assignor remembers between generations (layout V1)."""
    return _write_partitions(Writer(), owned).i32(generation).bytes()


def _sticky_user_data(data: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    """V0 or V1; anything else is somebody else's user data and says nothing."""
    reader = Reader(data)
    try:
        owned = _read_partitions(reader)
        return owned, reader.i32() if reader.remaining else NO_GENERATION
    except ValueError:
        return (), NO_GENERATION


def _write_partitions(writer: Writer, partitions: Iterable[TopicPartition]) -> Writer:
    by_topic = [(t, [p.partition for p in each]) for t, each in groupby(sorted(partitions), key=lambda p: p.topic)]
    writer.i32(len(by_topic))
    for topic, numbers in by_topic:
        writer.string(topic).i32(len(numbers))
        for number in numbers:
            writer.i32(number)
    return writer


def _read_partitions(reader: Reader) -> tuple[TopicPartition, ...]:
    partitions = []
    for _ in range(reader.count()):
        topic = reader.string()
        partitions += [TopicPartition(topic, reader.i32()) for _ in range(reader.count())]
    return tuple(partitions)
