"""Batches on their way into a 2011 log, each at most once.

See docs/modern-port.md (bytes), §14 (idempotence).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafka2011.broker.reactor import all_of, in_time
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import LogFailed
from kafka2011.log.log import Log
from since2011.era2011.bridge import Stored
from since2011.era2011.events import ProducersForgotten, ProducersInDoubt
from since2011.era2011.idempotence import Duplicate, RecentProducers, Written, last_sequence
from since2011.era2011.note_sync import NoteSync
from since2011.era2011.producer_journal import PartitionJournal, ProducerNotes
from since2011.era2011.unpacking import Unpacked
from since2011.wire.batches import Batch
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a partition's batches went: ``offset`` is the first record's, ``end`` where the log must be flushed to."""

    log: Log
    offset: int
    end: int
    journal: PartitionJournal | None

    @property
    def log_start(self) -> int:
        """The first offset that can be read."""
        return self.log.first_offset


class Intake:
    """Append for modern producers; remember the idempotent ones. Thread: reactor."""

    def __init__(
        self, broker: Broker, directory: Path, is_fresh: Callable[[int], bool], *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._broker = broker
        self._directory = directory
        self._clock = clock
        self.is_fresh = is_fresh
        """Whether this process may have given a producer id: then no batch of it can be in doubt."""
        directory.mkdir(mode=0o700, exist_ok=True)
        self._expire_ms = broker.config.integer("producer.id.expiration.ms")
        self.recent = RecentProducers(broker.config.integer("max.producer.ids"))
        self._told_forgotten = 0
        self.notes = ProducerNotes(directory / "ids.json", broker.address.broker_id)
        self._journals: dict[Log, PartitionJournal] = {}
        self._syncs: dict[PartitionJournal, NoteSync] = {}

    def append(self, topic: str, partition: int, unpacked: list[Unpacked]) -> Appended:
        """Append the batches of one request to one partition."""
        log = self._broker.log_for_produce(topic, partition)
        offset, end, journal = -1, log.end_offset, None
        for one in unpacked:
            batch, data = one.batch, one.stored
            if not data.n_messages:
                continue
            if batch.producer_id >= 0:
                journal = self._journal(log)
                first, end = self._append_once(log, journal, batch, data)
            else:
                start, end = self._broker.append_to(log, data.data, data.n_messages)
                first = data.first_offset(start)
            offset = first if offset < 0 else offset
        return Appended(log, offset, end, journal)

    def _append_once(self, log: Log, journal: PartitionJournal, batch: Batch, data: Stored) -> tuple[int, int]:
        """Append what is not in the log yet; (first record's offset, end) whether or not it was."""
        pid, epoch, first = batch.producer_id, batch.producer_epoch, batch.base_sequence
        last = last_sequence(first, batch.n_records)
        verdict = journal.producers.check(pid, epoch, first, last, fresh=self.is_fresh(pid))
        start = log.end_offset
        if isinstance(verdict, Duplicate):
            written = verdict.written
            if not written.missing:
                return written.offset, written.end
            rest = data.data[-written.missing :]
            offset = written.offset
        elif failed := log.failed or journal.failed:
            # Said before any gap in the sequence, which only comes from what was refused for this very reason.
            raise LogFailed(f"{log.topic}-{log.partition} is closed for writing since {failed}; restart the broker")
        elif verdict is ErrorCode.NONE:
            rest, offset = data.data, data.first_offset(start)
        else:
            raise Refused(verdict, f"producer {pid} epoch {epoch}: sequence {first} cannot be taken here now")
        noted = Written(pid, epoch, first, last, offset, start, start + len(rest), self._clock.wall_ms())
        journal.append(noted, self._appender(log, rest, data.n_messages))
        return offset, noted.end

    def _appender(self, log: Log, data: bytes, n_messages: int) -> Callable[[], None]:
        def append() -> None:
            self._broker.append_to(log, data, n_messages)

        return append

    def when_safe(self, appended: Appended, timeout_s: float) -> Deferred[None]:
        """Fire when the batches, and the note that they were written, are on disk.

        Fails with FlushFailed when that can never be known, with RequestTimedOut when it takes longer than
        ``timeout_s``. To be cancelled when nobody waits for it any more.
        """
        log = appended.log
        if log.flushed_offset < appended.end:
            self._broker.flush(log)
        waits = [self._broker.visibility.when_safe(log, appended.end)]
        if appended.journal is not None:
            waits.append(self._syncs[appended.journal].when_synced())
        return in_time(self._broker.reactor, timeout_s, all_of(waits), f"{log.topic}-{log.partition} not flushed")

    def _journal(self, log: Log) -> PartitionJournal:
        journal = self._journals.get(log)
        if journal is None:
            self.notes.open()
            path = self._directory / f"{log.topic}-{log.partition}.producers"
            journal = PartitionJournal(
                path,
                log.recovered_offset,
                same_boot=self.notes.same_boot,
                clock=self._clock,
                expire_ms=self._expire_ms,
                recent=self.recent,
            )
            self._journals[log] = journal
            self._syncs[journal] = NoteSync(self._broker, log, journal)
            if journal.producers.in_doubt:
                self._broker.journal.emit(ProducersInDoubt(topic=log.topic, partition=log.partition))
        return journal

    def maybe_compact(self) -> None:
        """Forget producers long gone, and say how many were forgotten before their time. Called by a timer."""
        forgotten = self.recent.n_forgotten - self._told_forgotten
        if forgotten:
            self._told_forgotten += forgotten
            self._broker.journal.emit(ProducersForgotten(n_producers=forgotten, remembered=len(self.recent)))
        for journal in self._journals.values():
            if not self._syncs[journal].running:
                journal.maybe_compact()

    def close(self) -> None:
        """Force all notes to disk and mark a clean end."""
        for journal in self._journals.values():
            journal.close()
        self.notes.close()
