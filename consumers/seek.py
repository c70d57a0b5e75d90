"""Move a group elsewhere in its partitions: first a plan, then exactly that plan.

There is no index from message numbers to offsets (§3.1): to count messages, or to make sure that one begins at an
offset, the partition is walked from the start of the segment before it.

Paper: §3.1 ("a consumer can deliberately rewind back to an old offset and re-consume data").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from consumers.groups import ZooKeeperGroups
from consumers.simple import SimpleConsumer
from kafka2011.errors import ConfigError, ConnectionFailed
from kafka2011.types import BrokerPartition
from kafka2011.wire import LATEST
from zk_registry.offsets import OffsetRegistry

_ALL_SEGMENTS = 100_000


@dataclass(frozen=True, slots=True)
class Move:
    """One line of a plan; ``old`` None = nothing was stored."""

    topic: str
    partition: BrokerPartition
    old: int | None
    new: int


def plan(groups: ZooKeeperGroups, group: str, to: str, topics: Sequence[str] | None = None) -> list[Move]:
    """Where each partition would go; nothing is changed.

    ``to``: ``start``, ``end``, an offset, ``@ms`` (to the segment), ``+N`` or ``-N`` messages from where it is.
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
                place = _Place(reader, topic, partition.partition)
                old = stored.get(partition)
                moves.append(Move(topic, partition, old, place.find(to, old)))
    return moves


def apply(groups: ZooKeeperGroups, group: str, moves: Sequence[Move]) -> None:
    """Write exactly this plan, topic by topic, each in one transaction."""
    for topic in sorted({move.topic for move in moves}):
        offsets = {move.partition: move.new for move in moves if move.topic == topic}
        OffsetRegistry(groups.registry, group).write(topic, offsets)


class _Place:
    """Message borders of one partition."""

    def __init__(self, reader: SimpleConsumer, topic: str, partition: int) -> None:
        self._reader, self._topic, self._partition = reader, topic, partition
        self._end, *starts = reader.offsets(topic, partition, LATEST, _ALL_SEGMENTS) or [0]
        self._starts = sorted(starts) or [self._end]

    def find(self, to: str, old: int | None) -> int:
        if to == "start":
            return self._starts[0]
        if to == "end":
            return self._end
        if to.startswith("@"):
            return (self._reader.offsets(self._topic, self._partition, int(to[1:])) or self._starts)[0]
        if to[0] in "+-":
            return self._shift(self._within(self._starts[0] if old is None else old), int(to))
        return self._checked(int(to))

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
