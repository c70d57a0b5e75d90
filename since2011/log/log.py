"""The log of one modern partition: append, roll, flush, read, cut.

    log start <= last stable offset <= high watermark <= log end

Readers see records below the high watermark, or, if they ask for committed ones only, below the last stable offset: the
first record of the earliest transaction that has not ended. The paper's answer (§3.1): readers see what is flushed.
"""

from __future__ import annotations

import threading
import uuid
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from kafka2011.clock import Clock
from kafka2011.errors import LogFailed, LogFull, OffsetOutOfRange
from kafka2011.events import Journal
from kafka2011.log.directory import NO_ROOM, sync_directory
from since2011.log.events import ModernSegmentRolled
from since2011.log.files import sync_file
from since2011.log.identity import PARTITION_METADATA
from since2011.log.indexes import Aborted
from since2011.log.leader_epochs import LeaderEpochs
from since2011.log.producer_state import ProducerState
from since2011.log.reading import Slice, aborted_in, locate
from since2011.log.segment import Segment
from since2011.log.settings import LogConfig
from since2011.log.snapshot_files import SnapshotFiles
from since2011.log.transactions import UnstableOffsets
from since2011.log.validation import Appended, Prepared, RecordListTooLarge, continuing
from since2011.wire.record_batch import BatchHeader, assign, headers
from since2011.wire.records import decode_marker


class ModernLog:
    """One partition. Thread: any.

    ``lock`` is held by whatever changes the list of segments or adds to the active one, for moments only: what takes
    long (syncing, copying in the cleaner) happens outside, on segments that no longer change.
    """

    def __init__(
        self,
        directory: Path,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        clock: Clock,
        journal: Journal,
        on_failure: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self.directory, self.topic, self.partition = directory, topic, partition
        self.config, self.clock, self.journal = config, clock, journal
        self.topic_id: uuid.UUID | None = None
        self.segments: list[Segment] = []
        self.epochs = LeaderEpochs(directory)
        self.producers = ProducerState()
        self.snapshots = SnapshotFiles(directory)
        self.unstable = UnstableOffsets(self.producers)
        self.log_start_offset = self.log_end_offset = self.recovery_point = 0
        self.high_watermark = 0
        self.lock = threading.RLock()
        self.rewriting = threading.Lock()
        """Held while segments other than the active one are replaced or go; taken before ``lock``."""
        self.last_flush = clock.monotonic()
        self.failed: str | None = None
        """Why nothing more may be appended; reading goes on."""
        self._on_failure = on_failure
        self._roll_ms = config.draw_roll_ms()
        self._names_unsynced = False
        self.is_unsynced = False
        """Its directory was just made, and may be lost with the power."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction has ended."""
        first = self.unstable.first
        if first is None:
            return self.high_watermark
        return min(self.high_watermark, max(first, self.log_start_offset))

    # -- appending ----------------------------------------------------------------------------------------------

    def append(self, prepared: Prepared, leader_epoch: int, *, check_sequences: bool = True) -> Appended:
        """Write a leader's batches: give them offsets and the epoch, check their producer, roll if it is time.

        Where ``should_flush`` is true afterwards, answer only when ``flush`` has returned.
        """
        with self.lock:
            return self._append(prepared, leader_epoch, check_sequences)

    def _append(self, prepared: Prepared, leader_epoch: int, sequences: bool) -> Appended:
        self._check_writable()
        data = prepared.data
        first, now_ms = self.log_end_offset, self.clock.wall_ms()
        view = memoryview(data)
        found: list[tuple[int, BatchHeader]] = []
        offset = first
        for position, header in headers(data):
            assign(view[position:], offset, leader_epoch)
            found.append((position, header._replace(base_offset=offset, leader_epoch=leader_epoch)))
            offset = found[-1][1].next_offset
        view.release()
        if len(data) > self.config.segment_bytes:
            raise RecordListTooLarge(
                f"{self}: {len(data)} bytes in one append; segment.bytes is {self.config.segment_bytes}"
            )
        for _, header in found:
            if header.producer_id < 0:
                continue
            if header.control:
                marker = decode_marker(data, header)
                if marker is not None:
                    self.producers.check_marker(header, marker)
                continue
            duplicate = self.producers.duplicate_of(header) if sequences else None
            if duplicate is not None:
                return Appended(duplicate.first_offset, duplicate.last_offset, duplicate.timestamp, duplicate=True)
            if prepared.must_be_verified:
                self.producers.check_verified(header, prepared.verified)
            self.producers.check(header, sequences=sequences)
        self.epochs.assign(leader_epoch, first)
        self._write(data, found, now_ms)
        return Appended(first, offset - 1, max(header.max_timestamp for _, header in found))

    def append_as_follower(self, data: bytes | bytearray) -> None:
        """Write a leader's bytes as they are; offsets go on from the end of this log."""
        with self.lock:
            self._append_as_follower(data)

    def _append_as_follower(self, data: bytes | bytearray) -> None:
        self._check_writable()
        found = continuing(data, self.log_end_offset, str(self))
        if not found:
            return
        end = found[-1][0] + found[-1][1].size
        for _, header in found:
            if header.leader_epoch >= 0:
                self.epochs.assign(header.leader_epoch, header.base_offset)
        self._write(bytearray(data[:end]), found, self.clock.wall_ms())

    def _check_writable(self) -> None:
        if self.failed is not None:
            raise LogFailed(f"{self} takes no appends: {self.failed}")

    def _write(self, data: bytearray, found: list[tuple[int, BatchHeader]], now_ms: int) -> None:
        last = found[-1][1].last_offset
        largest = max((header.max_timestamp, -header.last_offset) for _, header in found)
        try:
            if self.active.should_roll(len(data), last, largest[0], self._roll_ms, now_ms):
                self.roll(found[0][1].base_offset)
            self.active.append(data, last, (largest[0], -largest[1]))
        except OSError as error:
            self._not_written(error)
        self.log_end_offset = last + 1
        for position, header in found:
            if header.producer_id >= 0:
                self.remember(header, memoryview(data)[position : position + header.size])
        self.producers.offset = self.log_end_offset

    def _not_written(self, error: OSError) -> NoReturn:
        if error.errno in NO_ROOM:
            raise LogFull(f"{self}: nothing of the append is kept: {error}") from error
        self.fail(f"writing failed: {error}")
        raise LogFailed(f"{self}: {self.failed}") from error

    def fail(self, reason: str) -> None:
        """Take no more appends: what the disk has of this log nobody can tell."""
        self.failed = reason
        self._on_failure(reason)

    def remember(self, header: BatchHeader, batch: memoryview | bytes) -> None:
        """Let the producers' state follow a batch of the active segment; an aborted transaction is indexed."""
        if not header.control:
            self.producers.wrote(header)
            return
        aborted = self.producers_ended(header, batch)
        if aborted is not None:
            self.active.txn_index.append(aborted)

    def producers_ended(self, header: BatchHeader, batch: memoryview | bytes) -> Aborted | None:
        """Let the producers' state follow a marker; the aborted transaction it ends, if it ends one."""
        marker = decode_marker(batch, header)
        if marker is None:
            return None
        known = self.producers.producers.get(header.producer_id)
        first = known.current_txn_first_offset if known is not None else -1
        aborted = self.producers.ended(header, marker)
        if first >= 0:
            self.unstable.ended(first, header.base_offset)
        return aborted

    def roll(self, base_offset: int | None = None) -> Segment:
        """Begin a new active segment at the end of the log."""
        with self.lock:
            return self._roll(self.log_end_offset if base_offset is None else base_offset)

    def _roll(self, base: int) -> Segment:
        if self.segments and self.active.size == 0 and self.active.base_offset == base:
            return self.active
        if self.segments:
            self.active.finish()
        self.producers.offset = base
        self.snapshots.take(self.producers)
        segment = Segment(self.directory, base, self.config)
        segment.create()
        self._names_unsynced = True
        self.segments.append(segment)
        self._roll_ms = self.config.draw_roll_ms()
        self.journal.emit(ModernSegmentRolled(topic=self.topic, partition=self.partition, base_offset=base))
        return segment

    # -- watermarks ---------------------------------------------------------------------------------------------

    def raise_high_watermark(self, offset: int) -> bool:
        """Let readers see up to ``offset``; never beyond the end, never back. True if it moved."""
        new = min(offset, self.log_end_offset)
        if new <= self.high_watermark:
            return False
        self.high_watermark = new
        self.unstable.replicated(new)
        return True

    def raise_log_start(self, offset: int) -> bool:
        """Begin the log at ``offset`` for readers (DeleteRecords, retention); files go later. True if it moved."""
        if offset <= self.log_start_offset:
            return False
        if offset > self.high_watermark:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.high_watermark, str(self))
        self.log_start_offset = offset
        self.epochs.raise_start(offset)
        return True

    # -- flushing -----------------------------------------------------------------------------------------------

    @property
    def n_unflushed(self) -> int:
        """Offsets that may be lost with the power."""
        return self.log_end_offset - self.recovery_point

    def should_flush(self) -> bool:
        """Whether ``flush.messages`` or ``flush.ms`` says it is time; by default neither ever does."""
        if not self.n_unflushed:
            return False
        waited_ms = (self.clock.monotonic() - self.last_flush) * 1000
        return self.n_unflushed >= self.config.flush_messages or waited_ms >= self.config.flush_ms

    def flush(self) -> int:
        """Force what was appended so far to disk; return the offset up to which that holds. Thread: any."""
        with self.lock:
            end = self.log_end_offset
            segments = self.segments[self.place_of(self.recovery_point) :]
        return self._flush(segments, end)

    def flush_rolled(self) -> int:
        """The same for all segments but the active one; a start after a crash then reads that one only."""
        with self.lock:
            end = self.active.base_offset
            segments = self.segments[self.place_of(self.recovery_point) : -1]
        return self._flush(segments, end) if end > self.recovery_point else self.recovery_point

    def _flush(self, segments: list[Segment], end: int) -> int:
        try:
            for segment in segments:
                self._flush_segment(segment)
            self.snapshots.sync()
            self.epochs.sync()
            if self._names_unsynced:
                self._names_unsynced = False
                sync_directory(self.directory)
            if self.is_unsynced:
                self.is_unsynced = False
                sync_file(self.directory / PARTITION_METADATA)
                sync_directory(self.directory.parent)
        except OSError as error:
            # What a failed fsync has forgotten nobody can tell: this log takes nothing more.
            self.fail(f"flushing failed: {error}")
            raise LogFailed(f"{self}: {self.failed}") from error
        with self.lock:
            self.recovery_point = max(self.recovery_point, min(end, self.log_end_offset))
            self.last_flush = self.clock.monotonic()
            return self.recovery_point

    def _flush_segment(self, segment: Segment) -> None:
        try:
            segment.flush()
        except FileNotFoundError:
            # Retention or the cleaner was quicker; what they delete needs no flushing.
            if segment in self.segments:
                raise

    # -- reading ------------------------------------------------------------------------------------------------

    def locate(self, offset: int, max_bytes: int, upto: int, *, at_least_one: bool = True) -> Slice | None:
        """Where the batches from ``offset`` on lie, below ``upto``, in one segment; None if there are none.

        ``at_least_one``: a first batch larger than ``max_bytes`` is given whole, so that a reader gets on.
        """
        with self.lock:
            if not self.log_start_offset <= offset <= self.log_end_offset:
                raise OffsetOutOfRange(offset, self.log_start_offset, self.log_end_offset, str(self))
            segments = self.segments[self.place_of(offset) :] if offset < upto else []
            return locate(segments, offset, max_bytes, upto, self.log_end_offset, at_least_one)

    def aborted(self, part: Slice) -> list[Aborted]:
        """The aborted transactions that reach into a slice; too many do no harm, a missing one does."""
        with self.lock:
            return aborted_in(self.segments[self.place_of(part.first_offset) :], part, self.log_end_offset)

    def place_of(self, offset: int) -> int:
        """The number of the segment that holds ``offset``."""
        return max(0, bisect_right([segment.base_offset for segment in self.segments], offset) - 1)

    # -- closing ------------------------------------------------------------------------------------------------

    def close(self, *, clean: bool = True) -> None:
        """Flush, leave a snapshot at the end, and let go of the files."""
        if clean and self.failed is None:
            self.active.finish()
            self.producers.offset = self.log_end_offset
            self.snapshots.take(self.producers)
            self.flush()
        with self.lock:
            for segment in self.segments:
                segment.close()

    def reconfigure(self, config: LogConfig) -> None:
        """Go on with other settings."""
        with self.lock:
            self.config = config
            for segment in self.segments:
                segment.config = config
            self._roll_ms = config.draw_roll_ms()
