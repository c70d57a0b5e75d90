"""A partition as its leader holds it: real producer state and last stable offset over a list instead of files."""

from __future__ import annotations

from typing import NamedTuple

from consumers.group_protocol.coordinator.holdings import Holdings
from consumers.group_protocol.coordinator.offset_book import CommittedOffset, OffsetBook
from consumers.group_protocol.coordinator.settings import GroupSettings
from kafka2011.errors import Kafka2011Error
from kafka2011.types import TopicPartition
from since2011.log.indexes import Aborted
from since2011.log.producer_state import ProducerState, Verification
from since2011.log.transactions import UnstableOffsets
from since2011.topics.internal import OFFSETS_TOPIC
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import CONTROL, TRANSACTIONAL, BatchHeader
from since2011.wire.records import Marker
from since2011.wire.refusals import refusal

OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)
INPUT = TopicPartition("input", 0)


class Entry(NamedTuple):
    """One batch of one record, or a marker."""

    header: BatchHeader
    label: str
    value: int
    """An input that was copied, or in the offsets partition the next one to read."""


class SimulatedPartition:
    """Thread: one."""

    def __init__(self, key: TopicPartition) -> None:
        self.key = key
        self.producers = ProducerState()
        self.unstable = UnstableOffsets(self.producers)
        self.entries: list[Entry] = []
        self.aborted: list[Aborted] = []
        self.book = OffsetBook(Holdings(GroupSettings()))
        """Of the offsets partition: what the group has committed."""

    @property
    def last_stable_offset(self) -> int:
        """Where readers of committed records end."""
        first = self.unstable.first
        return len(self.entries) if first is None else first

    def produce(
        self, now: int, producer: tuple[int, int, int], label: str, value: int, verified: Verification | None
    ) -> ErrorCode:
        """Append one record of a transaction: the rules of ``ModernLog.append``."""
        header = self._header(now, producer, TRANSACTIONAL)
        offsets = self.key == OFFSETS
        try:
            if not offsets and self.producers.duplicate_of(header) is not None:
                return ErrorCode.NONE
            self.producers.check_verified(header, verified)
            self.producers.check(header, sequences=not offsets)
        except Kafka2011Error as error:
            return refusal(error)[0]
        self.entries.append(Entry(header, label, value))
        self.producers.wrote(header)
        if offsets:
            committed = CommittedOffset(value, -1, "", now, order=self.book.next_order())
            self.book.begin(producer[0], {INPUT: committed})
        return ErrorCode.NONE

    def mark(self, now: int, producer_id: int, epoch: int, commit: bool, coordinator_epoch: int) -> ErrorCode:
        """Append a marker: the rules of ``ModernLog.append`` and ``Markers.write``."""
        header = self._header(now, (producer_id, epoch, -1), TRANSACTIONAL | CONTROL)
        marker = Marker(commit, coordinator_epoch)
        try:
            self.producers.check_marker(header, marker)
        except Kafka2011Error as error:
            return refusal(error)[0]
        self.entries.append(Entry(header, "commit" if commit else "abort", -1))
        ended = self.producers.ended(header, marker)
        if ended is not None:
            self.aborted.append(ended)
        self.unstable.replicated(len(self.entries))
        self.book.end(producer_id, committed=commit)
        return ErrorCode.NONE

    def _header(self, now: int, producer: tuple[int, int, int], attributes: int) -> BatchHeader:
        return BatchHeader(len(self.entries), 0, 0, 2, 0, attributes, 0, now, now, *producer, 1)

    def read(self, *, committed: bool) -> list[Entry]:
        """What a reader is handed, filtered as clients do with the list of aborted transactions (sheet §8.10)."""
        if not committed:
            return [entry for entry in self.entries if not entry.header.control]
        waiting = sorted(self.aborted, key=lambda one: one.first_offset)
        gone: set[int] = set()
        found = []
        for entry in self.entries[: self.last_stable_offset]:
            header = entry.header
            while waiting and waiting[0].first_offset <= header.base_offset:
                gone.add(waiting.pop(0).producer_id)
            if header.control:
                if entry.label == "abort":
                    gone.discard(header.producer_id)
            elif header.producer_id not in gone:
                found.append(entry)
        return found
