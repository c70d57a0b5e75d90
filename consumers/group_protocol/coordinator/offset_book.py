"""The offsets of one group: what was committed, and what of it is durable.

See docs/group-protocol.md. Fetches read ``durable`` only, so no one resumes from an offset that a
crash may still take back; deletion and expiry work on ``appended``, so nothing on its way to disk survives them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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


class OffsetBook:
    """Last offset per partition. Thread: one."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._size = 0
        self.appended: dict[TopicPartition, CommittedOffset] = {}
        self.durable: dict[TopicPartition, CommittedOffset] = {}

    def append(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """These are written but may not survive a crash."""
        self._count(self.growth(offsets))
        self.appended.update(offsets)

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

    def delete(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in list(partitions):
            self._count(-_size(self.appended.pop(partition, None)))
            self.durable.pop(partition, None)


def _size(committed: CommittedOffset | None) -> int:
    """What it costs: the note is here and in the log's own memory."""
    return 0 if committed is None else OFFSET_OVERHEAD + 2 * len(committed.metadata)
