"""Which groups this broker speaks for: those whose partition of ``__consumer_offsets`` it leads.

    gained     the partition's log is read, in a thread; until then its groups are told 14
    lost       its groups are forgotten; whoever waits in them is told 16
    missing    the topic is made when somebody first asks for a coordinator

With one replica a partition has no other leader: while its broker is away, its groups are told 15, and nobody goes on
from older offsets.

Paper: §3.2 (any consumer reads its offset from ZooKeeper itself). See docs/since-2011.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from consumers.group_protocol.coordinator.settings import Record
from consumers.group_protocol.events import OffsetsNotRead, OffsetsRead
from consumers.group_protocol.offsets_reading import Replayed, replay
from consumers.group_protocol.offsets_topic import OffsetsTopic
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Journal
from since2011.server.modern_topics import Led, ModernTopics
from since2011.topics.image import PartitionImage
from since2011.topics.internal import OFFSETS_TOPIC, partition_of


class GroupKeeper(Protocol):
    """Who holds the groups in memory."""

    def load(self, records: list[Record]) -> None:
        """Take these over."""

    def resign(self, is_ours: Callable[[str], bool]) -> None:
        """Forget all others."""


class OffsetsLeadership:
    """Follows the metadata of ``__consumer_offsets``. Thread: reactor."""

    def __init__(self, topics: ModernTopics, log: OffsetsTopic, groups: GroupKeeper, journal: Journal) -> None:
        self._topics, self._log, self._groups, self._journal = topics, log, groups, journal
        self._epochs: dict[int, int] = {}
        """The leader epoch of each partition that is ours, read or not."""
        self.loading: set[int] = set()
        self.unreadable: dict[int, str] = {}
        self._stopped = False

    def partition(self, number: int) -> PartitionImage | None:
        """What the metadata says of one partition; None if there is no topic yet."""
        return self._topics.image.partition(OFFSETS_TOPIC, number)

    def is_ours(self, group: str) -> bool:
        """Whether this broker leads the group's partition."""
        return partition_of(group) in self._epochs

    def follow(self) -> Deferred[list[tuple[bool, None]]]:
        """Take over what became ours, and let go of what did not stay so; fires when everything is read."""
        topic = self._topics.image.topics.get(OFFSETS_TOPIC)
        partitions = () if topic is None or self._stopped else topic.partitions
        own = {n: each.leader_epoch for n, each in enumerate(partitions) if each.leader == self._topics.broker_id}
        changed = [number for number, epoch in own.items() if self._epochs.get(number) != epoch]
        lost = self._epochs.keys() - own.keys()
        self._epochs = own
        for number in (*lost, *changed):
            self._log.leave(number)
            self.loading.discard(number)
            self.unreadable.pop(number, None)
        if lost:
            self._groups.resign(lambda group: partition_of(group) in own)
        return DeferredList([self._take(number) for number in changed])

    def stop(self) -> None:
        """Take nothing over any more."""
        self._stopped = True

    def _take(self, number: int) -> Deferred[None]:
        epoch = self._epochs[number]
        try:
            led = self._topics.led(OFFSETS_TOPIC, number)
        except Kafka2011Error as error:
            self._unreadable(number, str(error))
            return Deferred.fromCoroutine(_nothing())
        if led.log is None or led.log.log_end_offset == led.log.log_start_offset:
            self._log.serve(number, led)
            return Deferred.fromCoroutine(_nothing())
        self.loading.add(number)
        reading = deferToThread(replay, led.log, lambda: self._epochs.get(number) == epoch)
        return reading.addCallbacks(
            self._read, self._not_read, callbackArgs=(number, epoch, led), errbackArgs=(number, epoch)
        )

    def _read(self, found: Replayed, number: int, epoch: int, led: Led) -> None:
        if self._epochs.get(number) != epoch or self._stopped:
            return
        records = list(found.records())
        self._groups.load(records)
        self.loading.discard(number)
        self._log.serve(number, led)
        if records:
            self._journal.emit(OffsetsRead(partition=number, n_records=len(records)))

    def _not_read(self, failure: Failure, number: int, epoch: int) -> None:
        if self._epochs.get(number) == epoch:
            self.loading.discard(number)
            self._unreadable(number, failure.getErrorMessage())

    def _unreadable(self, number: int, reason: str) -> None:
        self.unreadable[number] = reason
        self._journal.emit(OffsetsNotRead(partition=number, error=reason))


async def _nothing() -> None:
    """Done already."""
