"""Which groups this broker speaks for: those whose partition of ``__consumer_offsets`` it leads.

    elected    the partition's log is read, in a thread, and waited for until all replicas in sync have what the last
               leader left: a commit that could still vanish is told nobody. Until then its groups are told 14
    resigned   its groups are forgotten; whoever waits in them is told 16
    missing    the topic is made when somebody first asks for a coordinator

Elected anew, without another leader in between, it goes on: nobody else has written. With one replica a partition has
no other leader: while its broker is away, its groups are told 15, and nobody goes on from older offsets.

Paper: §3.2 (any consumer reads its offset from ZooKeeper itself). See docs/since-2011.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.threads import deferToThread

from consumers.group_protocol.coordinator.settings import Record
from consumers.group_protocol.events import OffsetsNotRead, OffsetsRead
from consumers.group_protocol.offsets_reading import replay
from consumers.group_protocol.offsets_topic import OffsetsTopic
from kafka2011.errors import RequestTimedOut
from kafka2011.events import Journal
from since2011.log.log import ModernLog
from since2011.replication.leading import Leading
from since2011.server.modern_topics import ModernTopics
from since2011.topics.image import PartitionImage
from since2011.topics.internal import OFFSETS_TOPIC, partition_of


class GroupKeeper(Protocol):
    """Who holds the groups in memory."""

    def load(self, records: list[Record], open_commits: Mapping[int, list[Record]]) -> None:
        """Take these over; by producer those of transactions that have not ended."""

    def resign(self, is_ours: Callable[[str], bool]) -> None:
        """Forget all others."""


class OffsetsLeadership:
    """Listens to who leads ``__consumer_offsets``. Thread: reactor."""

    def __init__(
        self, topics: ModernTopics, leading: Leading, log: OffsetsTopic, groups: GroupKeeper, journal: Journal
    ) -> None:
        self._topics, self._leading, self._log = topics, leading, log
        self._groups, self._journal = groups, journal
        self._ours: dict[int, object] = {}
        """The partitions that are ours, read or not; a new token each time one becomes ours."""
        self._taking: dict[object, Deferred[Any]] = {}
        self.loading: set[int] = set()
        self.unreadable: dict[int, str] = {}
        self._stopped = False

    def partition(self, number: int) -> PartitionImage | None:
        """What the metadata says of one partition; None if there is no topic yet."""
        return self._topics.image.partition(OFFSETS_TOPIC, number)

    def is_ours(self, group: str) -> bool:
        """Whether this broker leads the group's partition."""
        return partition_of(group) in self._ours

    def ready(self) -> Deferred[list[tuple[bool, Any]]]:
        """Fire when everything that is ours by now is read."""
        return DeferredList(list(self._taking.values()))

    def stop(self) -> None:
        """Take nothing over any more."""
        self._stopped = True

    # Who leads

    def elected(self, index: int, epoch: int) -> None:
        """The groups of the partition are this broker's."""
        if self._stopped:
            return
        if index in self._ours:
            if index in self._log.served:
                self._log.serve(index, self._topics.led(OFFSETS_TOPIC, index))
            return
        token = self._ours[index] = object()
        taking = Deferred.fromCoroutine(self._take(index, token))
        if not taking.called:
            self._taking[token] = taking
            taking.addCallback(lambda _: self._taking.pop(token))

    def resigned(self, index: int) -> None:
        """They are another's."""
        if self._ours.pop(index, None) is None:
            return
        self._log.leave(index)
        self.loading.discard(index)
        self.unreadable.pop(index, None)
        self._groups.resign(self.is_ours)

    async def _take(self, number: int, token: object) -> None:
        try:
            led = self._topics.led(OFFSETS_TOPIC, number)
            log = led.log
            if log is not None and log.log_end_offset > log.log_start_offset:
                self.loading.add(number)
                await self._read(number, token, log)
            while self._is_wanted(number, token) and (settling := self._leading.settled(led)) is not None:
                self.loading.add(number)
                try:
                    await settling
                except RequestTimedOut:
                    continue
                led = self._topics.led(OFFSETS_TOPIC, number)
            if self._is_wanted(number, token):
                self.loading.discard(number)
                self._log.serve(number, self._topics.led(OFFSETS_TOPIC, number))
        except Exception as error:  # whatever it is, the groups of other partitions are spoken for
            if self._is_wanted(number, token):
                self.loading.discard(number)
                self._unreadable(number, str(error))

    def _is_wanted(self, number: int, token: object) -> bool:
        return self._ours.get(number) is token and not self._stopped

    async def _read(self, number: int, token: object, log: ModernLog) -> None:
        found = await deferToThread(replay, log, lambda: self._is_wanted(number, token))
        if not self._is_wanted(number, token):
            return
        records = list(found.records())
        self._groups.load(records, found.open_commits())
        if records:
            self._journal.emit(OffsetsRead(partition=number, n_records=len(records)))

    def _unreadable(self, number: int, reason: str) -> None:
        self.unreadable[number] = reason
        self._journal.emit(OffsetsNotRead(partition=number, error=reason))
