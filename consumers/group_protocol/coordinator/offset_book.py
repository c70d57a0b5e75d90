"""The offsets of one group: what was committed, and what of it is durable.

Offsets of a transaction are pending until its marker is there: then they count, unless a later commit does already, or
they never were.

See docs/group-protocol.md. Fetches read ``durable`` only, so no one resumes from an offset that a
crash may still take back; deletion and expiry work on ``appended``, so nothing on its way to disk survives them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from consumers.group_protocol.coordinator.holdings import OFFSET_OVERHEAD, Holdings
from kafka2011.types import TopicPartition


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to read (§3.1 of the paper), as a member committed it."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = -1
    """When it is over, where the member said so itself (OffsetCommit 2 to 4); -1: by the broker's retention."""
    order: int = field(default=-1, compare=False)
    """Of two commits of one group the later one has the larger."""


class OffsetBook:
    """Last offset per partition. Thread: one."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._size = 0
        self.appended: dict[TopicPartition, CommittedOffset] = {}
        self.durable: dict[TopicPartition, CommittedOffset] = {}
        self.pending: dict[int, dict[TopicPartition, CommittedOffset]] = {}
        """By producer: the offsets of transactions that have not ended."""
        self._last_order = -1

    def next_order(self) -> int:
        """The place of a commit after all others."""
        self._last_order += 1
        return self._last_order

    def append(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """These are written but may not survive a crash."""
        self._count(self.growth(offsets))
        self.appended.update(offsets)
        self._note(offsets)

    def _note(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._last_order = max(self._last_order, *(each.order for each in offsets.values()), -1)

    def growth(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> int:
        """How many bytes more ``append`` would keep."""
        return sum(_size(each) - _size(self.appended.get(partition)) for partition, each in offsets.items())

    def close(self) -> None:
        """The group is gone: these count no more."""
        self._count(-self._size)

    def _count(self, more: int) -> None:
        self._size += more
        self._holdings.offsets += more

    def settle(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """These are durable now; what was deleted meanwhile stays deleted."""
        for partition, committed in offsets.items():
            if partition in self.appended:
                self.durable[partition] = committed

    # Transactions

    def begin(self, producer_id: int, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """These are written as part of the producer's transaction; later ones of it take the place of earlier ones."""
        held = self.pending.setdefault(producer_id, {})
        self._count(sum(_size(each) - _size(held.get(partition)) for partition, each in offsets.items()))
        held.update(offsets)
        self._note(offsets)

    def end(self, producer_id: int, *, committed: bool) -> None:
        """The transaction's marker is in the log."""
        held = self.pending.pop(producer_id, {})
        self._count(-sum(_size(each) for each in held.values()))
        news = {partition: each for partition, each in held.items() if self._is_news(partition, each)}
        if committed and news:
            self.append(news)
            self.settle(news)

    def _is_news(self, partition: TopicPartition, committed: CommittedOffset) -> bool:
        known = self.appended.get(partition)
        return known is None or known.order < committed.order

    def is_stable(self, partition: TopicPartition) -> bool:
        """Whether nothing is on its way that may change what is committed for a partition."""
        if self.appended.get(partition) is not self.durable.get(partition):
            return False
        return not any(partition in held for held in self.pending.values())

    def delete(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in list(partitions):
            self._count(-_size(self.appended.pop(partition, None)))
            self.durable.pop(partition, None)
            for held in self.pending.values():
                self._count(-_size(held.pop(partition, None)))


def _size(committed: CommittedOffset | None) -> int:
    """What it costs: the note is here and in the log's own memory."""
    return 0 if committed is None else OFFSET_OVERHEAD + 2 * len(committed.metadata)
