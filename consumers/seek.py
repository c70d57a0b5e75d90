"""Move a group elsewhere in its partitions: first a plan, then exactly that plan.

There is no index from message numbers to offsets (§3.1): to count messages, or to make sure that one begins at an
offset, the partition is walked from the start of the segment before it.

Paper: §3.1 ("a consumer can deliberately rewind back to an old offset and re-consume data").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from consumers.groups import ZooKeeperGroups
from consumers.simple import SimpleConsumer
from kafka2011.errors import ConfigError, ConnectionFailed
from kafka2011.types import BrokerPartition
from kafka2011.wire import LATEST
from zk_registry.offsets import OffsetRegistry

_ALL_SEGMENTS = 100_000


TimeOf = Callable[[bytes], int | None]


@dataclass(frozen=True, slots=True)
class Move:
    """One line of a plan; ``old`` None = nothing was stored."""

    topic: str
    partition: BrokerPartition
    old: int | None
    new: int
    why: str
    """What decided the new offset, in words."""


def plan(
    groups: ZooKeeperGroups, group: str, to: str, topics: Sequence[str] | None = None, time_of: TimeOf | None = None
) -> list[Move]:
    """Where each partition would go; nothing is changed.

    ``to``: ``start``, ``end``, an offset, ``@ms``, ``+N`` or ``-N`` messages from where it is. A broker of 2011 knows
    the times of segment files only, so ``@ms`` is the start of the last segment begun before that time; given
    ``time_of``, the segment is read from there to the first message whose payload names that time or a later one.
    """
    brokers = groups.brokers.brokers()
    moves = []
    for topic in topics or groups.topics(group):
        stored = OffsetRegistry(groups.registry, group).read_all(topic)
        for partition in sorted({*groups.brokers.partitions(topic), *stored}):
            address = brokers.get(partition.broker_id)
            if address is None:
                raise ConnectionFailed(
                    f"broker {partition.broker_id} is away, so {topic}/{partition} cannot be planned; nothing was "
                    "changed. Try again when it is back"
                )
            with SimpleConsumer(address.host, address.port, timeout_s=10.0) as reader:
                place = _Place(reader, topic, partition.partition, time_of)
                old = stored.get(partition)
                new, why = place.find(to, old)
                moves.append(Move(topic, partition, old, new, why))
    return moves


def apply(groups: ZooKeeperGroups, group: str, moves: Sequence[Move]) -> None:
    """Write exactly this plan, topic by topic, each in one transaction."""
    for topic in sorted({move.topic for move in moves}):
        offsets = {move.partition: move.new for move in moves if move.topic == topic}
        OffsetRegistry(groups.registry, group).write(topic, offsets)


class _Place:
    """Message borders of one partition."""

    def __init__(self, reader: SimpleConsumer, topic: str, partition: int, time_of: TimeOf | None) -> None:
        self._reader, self._topic, self._partition = reader, topic, partition
        self._time_of = time_of
        self._end, *starts = reader.offsets(topic, partition, LATEST, _ALL_SEGMENTS) or [0]
        self._starts = sorted(starts) or [self._end]

    def find(self, to: str, old: int | None) -> tuple[int, str]:
        """The offset that ``to`` means here, and why."""
        if to == "start":
            return self._starts[0], "the first message there is"
        if to == "end":
            return self._end, "the end"
        if to.startswith("@"):
            return self._at(int(to[1:]))
        if to[0] in "+-":
            origin, whence = (self._starts[0], "the start") if old is None else (old, "the stored offset")
            return self._shift(self._within(origin), int(to)), f"{to} messages from {whence}"
        return self._checked(int(to)), "as asked for"

    def _at(self, time_ms: int) -> tuple[int, str]:
        before = self._reader.offsets(self._topic, self._partition, time_ms)
        start = before[0] if before else self._starts[0]
        if self._time_of is None:
            return start, "start of the last segment begun before that time" if before else "no segment is that old"
        for message in self._reader.messages(self._topic, self._partition, start, follow=False):
            named = self._time_of(message.payload)
            if named is not None and named >= time_ms:
                return message.offset, "first message that names that time or a later one"
        return self._end, "no message names that time or a later one"

    def _within(self, offset: int) -> int:
        return min(max(offset, self._starts[0]), self._end)

    def _shift(self, offset: int, by: int) -> int:
        """``by`` messages further or back, as far as there are any."""
        if by >= 0:
            for _, after in islice(self._messages(offset), by):
                offset = after
            return offset
        behind: deque[int] = deque()
        end = offset
        for start in reversed([start for start in self._starts if start < offset]):
            segment = deque((at for at, _ in self._messages(start, end)), maxlen=-by - len(behind))
            behind.extendleft(reversed(segment))
            end = start
            if len(behind) >= -by:
                break
        return behind[0] if behind else offset

    def _checked(self, offset: int) -> int:
        """An offset at which a message begins, within what the broker has."""
        offset = self._within(offset)
        if offset in (self._end, *self._starts):
            return offset
        start = max(start for start in self._starts if start <= offset)
        before = start
        for at, after in self._messages(start, offset):
            before = at if after > offset else after
        if before != offset:
            raise ConfigError(
                f"no message of {self._topic}-{self._partition} begins at offset {offset}; the one before begins at "
                f"{before}. Nothing was changed"
            )
        return offset

    def _messages(self, start: int, until: int | None = None) -> Iterator[tuple[int, int]]:
        """Offset and next offset of each message."""
        found = self._reader.messages(self._topic, self._partition, start, until=until, follow=False)
        return ((message.offset, message.next_offset) for message in found)
