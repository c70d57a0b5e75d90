"""The log of one partition: append at the end, read by offset, flush, roll, forget the oldest.

Paper: §3.1 Simple storage. "Each partition of a topic corresponds to a logical log." A message's offset is its byte
position; nothing is indexed and nothing is cached in the process: the page cache does that. "A message is only exposed
to the consumers after it is flushed": reading stops at ``flushed_offset``.

Differs: a roll does not wait for the disk; the next flush syncs the finished segment first (docs/paper-vs-code.md).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import LogError, OffsetOutOfRange
from kafka2011.events import Journal
from kafka2011.failpoints import fail_point
from kafka2011.log import retention
from kafka2011.log.checkpoint import KeptFile, RecoveryPoint
from kafka2011.log.directory import set_aside, sync_directory
from kafka2011.log.events import LogFlushed, SegmentRolled, SegmentsDeleted, SegmentSetAside
from kafka2011.log.health import Health
from kafka2011.log.segment import FileSlice, Segment, SegmentInfo, segment_name
from kafka2011.log.segment_list import SegmentList
from kafka2011.log.settings import LogSettings
from kafka2011.types import TopicPartition
from kafka2011.wire.offsets import EARLIEST, LATEST

__all__ = ["FileSlice", "Log", "SegmentInfo"]


class Log:
    """One partition's log. Thread: append and read from one thread; flush and retain from any.

    Invariants: first_offset <= flushed_offset <= end_offset; bytes below flushed_offset are on disk and never change;
    end_offset never moves back while the process lives; after a failed sync flushed_offset never moves again.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        directory: Path,
        segments: SegmentList,
        settings: LogSettings,
        *,
        clock: Clock = SYSTEM_CLOCK,
        journal: Journal | None = None,
    ) -> None:
        self.topic, self.partition, self.directory = topic, partition, directory
        self._settings, self._clock, self._journal = settings, clock, journal or Journal(clock=clock)
        self._file_size = settings.file_size_of(topic)
        self._roll_s = settings.roll_ms_of(topic) / 1000
        self._flush_s = settings.flush_interval_ms_of(topic) / 1000
        self._segments = segments
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self.flushed_offset = self.end_offset = segments.active.end
        self.recovered_offset = self.end_offset
        """The end that was found when the log was opened."""
        self.n_unflushed = 0
        self._last_flush = clock.monotonic()
        self._first_append: float | None = None
        # A topic is created without waiting for the disk; its first flush makes its names durable.
        self._new_names: tuple[Path, ...] = () if segments.active.size else (directory, directory.parent)
        self._health = Health(TopicPartition(topic, partition), self._journal)
        self.on_sealed: Callable[[], None] = lambda: None
        """Called by flush, in its thread, once a finished segment is wholly on disk."""

    def __repr__(self) -> str:
        return f"<Log {self.topic}-{self.partition} {self.first_offset}..{self.flushed_offset}..{self.end_offset}>"

    @property
    def first_offset(self) -> int:
        """The oldest offset from which one can read to the end.

        Older ones may be there as well, before files that were lost: who asks for those is served up to the gap, and
        then told "out of range"; were they the beginning, a consumer that begins again would be told so for ever.
        """
        return self._segments.whole_from

    @property
    def oldest_offset(self) -> int:
        """The oldest offset still kept."""
        return self._segments.first.start

    @property
    def visible_offset(self) -> int:
        """How far readers may see: what is flushed (§3.1)."""
        return self.flushed_offset

    @property
    def reach(self) -> int:
        """No reader can be further than this."""
        return self.visible_offset

    @property
    def size(self) -> int:
        """Bytes kept, flushed or not."""
        return sum(segment.size for segment in self._segments)

    @property
    def room(self) -> int:
        """Bytes the active segment still takes before an append rolls; negative once that is due."""
        return self._file_size - self._segments.active.size

    @property
    def full(self) -> str | None:
        """Why the last append found no room, if so."""
        return self._health.full

    @property
    def failed(self) -> str | None:
        """Why the log takes no more appends, if so."""
        return self._health.failed

    def append(self, data: bytes, n_messages: int) -> tuple[int, int]:
        """Write a validated message set at the end; return the offsets where it starts and ends.

        All or nothing: raises LogFull (try again later) or LogFailed (restart), and then no byte of it stays.
        """
        with self._lock:
            self._health.check()
            try:
                if self._should_roll():
                    self._roll()
                if data:
                    self._segments.active.append(data)
            except OSError as error:
                raise self._health.append_failed(error) from error
            start = self.end_offset
            if data:
                self.end_offset += len(data)
                self.n_unflushed += n_messages
                self._segments.active.last_append_ms = self._clock.wall_ms()
                if self._first_append is None:
                    self._first_append = self._clock.monotonic()
                self._health.appended()
            return start, self.end_offset

    def read(self, offset: int, max_size: int) -> FileSlice:
        """At most ``max_size`` visible bytes from ``offset`` on, never across a segment (Figure 2).

        At the visible end the slice is empty; outside [oldest, visible end] or in a gap raises OffsetOutOfRange.
        """
        segments = self._segments
        if not segments.first.start <= offset <= self.reach:
            raise self._out_of_range(offset)
        return self._slice(segments, offset, max_size, self.visible_offset)

    def _slice(self, segments: SegmentList, offset: int, max_size: int, upto: int) -> FileSlice:
        segment = segments.holding(offset)
        size = min(max_size, segment.end - offset, upto - offset)
        if size <= 0:
            if segment.end <= offset < upto:
                raise self._out_of_range(offset)
            return FileSlice(-1, 0, 0)
        try:
            return segment.slice(offset - segment.start, size)
        except FileNotFoundError:
            # Retention took the segment between the look-up and the open.
            raise self._out_of_range(offset) from None
        except OSError as error:
            raise LogError(f"cannot read {segment.path}: {error}; the request may be tried again") from error

    def should_flush(self, now: float) -> bool:
        """Whether enough messages or enough time (monotonic ``now``) have passed since the last flush (§3.1)."""
        if self.flushed_offset == self.end_offset or self.failed:
            return False
        return (
            self.n_unflushed >= self._settings.flush_messages
            or now - self._last_flush >= self._flush_s
            or self.flushed_offset < self._segments.active.start
        )

    def flush(self) -> int:
        """Force to disk what has been appended when this begins; return the new flushed offset. Blocks.

        A failed sync is final: the kernel may have dropped the pages, so a later success would prove nothing.
        """
        with self._flushing:
            with self._lock:
                self._health.check()
                target, n_messages, new_names = self.end_offset, self.n_unflushed, self._new_names
                segments = self._segments
                dirty = segments.from_offset(self.flushed_offset)
            if target == self.flushed_offset:
                return target
            try:
                for segment in dirty:
                    segment.sync()
                for directory in new_names:
                    fail_point("log.flush.before_directory_sync")
                    sync_directory(directory)
            except OSError as error:
                with self._lock:
                    failure = self._health.flush_failed(error)
                raise failure from error
            with self._lock:
                self.flushed_offset = target
                self.n_unflushed -= n_messages
                self._last_flush = self._clock.monotonic()
                if new_names:
                    self._new_names = () if segments is self._segments else (self.directory,)
                for sealed in dirty[:-1]:
                    sealed.close()
        self._journal.emit(
            LogFlushed(topic=self.topic, partition=self.partition, offset=target, n_messages=n_messages)
        )
        if len(dirty) > 1:
            self.on_sealed()
        return target

    def offsets_before(self, time_ms: int, max_offsets: int) -> list[int]:
        """Offsets of segment starts (and the visible end) no newer than ``time_ms``, newest first (docs/log.md)."""
        visible = self.visible_offset
        pairs = [(s.start, s.last_append_ms) for s in self._segments if s.start <= visible]
        if visible > pairs[-1][0]:
            pairs.append((visible, self._clock.wall_ms()))
        if time_ms == LATEST:
            upto = len(pairs)
        elif time_ms == EARLIEST:
            return [self.first_offset][: max(0, max_offsets)]
        else:
            upto = max((i + 1 for i, (_, when) in enumerate(pairs) if when <= time_ms), default=0)
        return [offset for offset, _ in reversed(pairs[:upto])][: max(0, max_offsets)]

    def recovery_point(self) -> RecoveryPoint:
        """What to write down for the next start: names of files that are durable, sizes that are flushed."""
        flushed, segments = self.flushed_offset, self._segments
        files = tuple(
            KeptFile(s.start, min(s.size, flushed - s.start), s.last_append_ms) for s in segments if s.start < flushed
        )
        return RecoveryPoint(segments.first.start, flushed, files)

    def segments(self) -> list[SegmentInfo]:
        """The segments as they are now, oldest first."""
        flushed = self.flushed_offset
        return [
            SegmentInfo(s.start, s.size, max(0, min(s.size, flushed - s.start)), s.last_append_ms, s.path)
            for s in self._segments
        ]

    def retain(self, *, by_age: bool, at_most: int, forget: Callable[[], None] = lambda: None) -> int:
        """Delete the oldest segments that are too old or too many; return how many (docs/log.md).

        The next offset never moves: when even the active segment goes, an empty one is rolled first. ``forget`` is
        called before the first file is removed, to write down that these offsets are gone.
        """
        with self._lock:
            chosen, rule = self._too_old_or_too_many(by_age)
            if chosen == len(self._segments):
                if self._segments.active.size:
                    try:
                        self._roll()
                    except OSError as error:
                        self._health.housekeeping_failed("roll for retention", self.directory, error)
                        chosen -= 1
                else:
                    chosen -= 1
                    self._touch_active()
            chosen = min(chosen, at_most)
            gone = list(self._segments)[:chosen]
            for segment in gone:
                segment.close()
            self._segments = self._segments.without_oldest(chosen)
        if gone:
            forget()
            for segment in gone:
                self._remove(segment.path)
            self._journal.emit(
                SegmentsDeleted(
                    topic=self.topic,
                    partition=self.partition,
                    n_segments=len(gone),
                    size=sum(segment.size for segment in gone),
                    first_offset=self.first_offset,
                    rule=rule,
                )
            )
        return len(gone)

    def close(self) -> None:
        """Flush (unless the log has failed) and close the files."""
        try:
            if not self.failed:
                self.flush()
        finally:
            with self._lock:
                for segment in self._segments:
                    segment.close()

    def _should_roll(self) -> bool:
        """0.7.2's rule: strictly larger than the limit, or first appended to too long ago."""
        if self._segments.active.size > self._file_size:
            return True
        return self._first_append is not None and self._clock.monotonic() - self._first_append > self._roll_s

    def _roll(self) -> None:
        path = self.directory / segment_name(self.end_offset)
        if path == self._segments.active.path:
            # The active segment is empty and already begins here.
            self._first_append = None
            return
        if path.exists():
            aside = set_aside(path, "stray")
            self._journal.emit(
                SegmentSetAside(
                    topic=self.topic, partition=self.partition, path=str(aside), reason="in the way of a new segment"
                )
            )
        segment = Segment.create(self.directory, self.end_offset, self._clock.wall_ms())
        self._segments = self._segments.appended(segment)
        self._first_append = None
        self._new_names = self._new_names or (self.directory,)
        self._journal.emit(SegmentRolled(topic=self.topic, partition=self.partition, start=segment.start))

    def _too_old_or_too_many(self, by_age: bool) -> tuple[int, str]:
        """How many of the oldest, and why; nothing above the visible mark is ever chosen."""
        visible = self.visible_offset
        whole = [s for s in self._segments if s.end <= visible]
        keep_ms = self._settings.retention_ms_of(self.topic)
        old = retention.expired(whole, self._clock.wall_ms(), keep_ms) if by_age else 0
        sizes = [segment.size for segment in whole[old:]]
        many = retention.oversize(sizes, self._settings.retention_size_of(self.topic))
        return old + many, "age" if old else "size"

    def _touch_active(self) -> None:
        active = self._segments.active
        active.last_append_ms = self._clock.wall_ms()
        try:
            os.utime(active.path, (active.last_append_ms / 1000,) * 2)
        except OSError as error:
            self._health.housekeeping_failed("touch", active.path, error)

    def _remove(self, path: Path) -> None:
        """A deletion that a power cut undoes is done again at the next start, so the directory needs no sync."""
        try:
            fail_point("log.retention.before_unlink")
            os.unlink(path)
            fail_point("log.retention.after_unlink")
        except OSError as error:
            self._health.housekeeping_failed("delete", path, error)

    def _out_of_range(self, offset: int) -> OffsetOutOfRange:
        return OffsetOutOfRange(offset, self.first_offset, self.visible_offset, f"{self.topic}-{self.partition}")
