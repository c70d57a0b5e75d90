"""The log of one partition at a member of a logical broker: the paper's, with a watermark, and cut where it must be.

Leading, it takes appends and shows what is below the watermark; following, it takes the leader's bytes and shows
nothing to anybody. Paper: §3.1; §3.3, future work.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from kafka2011.errors import InvalidMessageSize
from kafka2011.log.directory import sync_directory
from kafka2011.log.log import FileSlice, Log
from kafka2011.log.segment import Segment, segment_name
from kafka2011.log.segment_list import SegmentList
from kafka2011.types import TopicPartition
from kafka2011.wire import validate_set
from since2011.standby.role import Role


class MemberLog(Log):
    """Thread: as ``Log``; what follows the leader is called by one thread, and only while nobody appends."""

    def __init__(self, role: Role, write_down: Callable[[], None], *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._role, self._write_down = role, write_down
        self.where = TopicPartition(self.topic, self.partition)
        self.watermark = self.first_offset
        self.led_in = -1
        """The epoch in which this log was last begun to be led."""
        self._leader_start = self.first_offset
        self._begins_at = -1
        """Where the leader began a segment, if the next bytes belong to it."""

    # -- what clients do ------------------------------------------------------------------------------------------

    @property
    def visible_offset(self) -> int:
        """What is flushed here and held by every member in sync."""
        return min(self.flushed_offset, max(self.watermark, self.oldest_offset))

    @property
    def reach(self) -> int:
        """A reader may have seen more at the last leader than this one can show yet."""
        return self.end_offset

    def read(self, offset: int, max_size: int) -> FileSlice:
        """As ``Log``; raises NotServing unless this member leads."""
        self._role.check()
        return super().read(offset, max_size)

    def append(self, data: bytes, n_messages: int) -> tuple[int, int]:
        """As ``Log``; raises NotServing unless this member leads."""
        self._role.check()
        if self.led_in != self._role.epoch:
            self._role.lead(self)
        place = super().append(data, n_messages)
        self._role.appended(self)
        return place

    def offsets_before(self, time_ms: int, max_offsets: int) -> list[int]:
        """As ``Log``. Raises NotServing while the end that the last leader told may be beyond what is visible here."""
        self._role.check(self)
        return super().offsets_before(time_ms, max_offsets)

    # -- what followers are given ---------------------------------------------------------------------------------

    def segment_at(self, offset: int) -> tuple[int, int]:
        """Where the segment that holds ``offset`` begins and ends."""
        segment = self._segments.holding(max(offset, self.oldest_offset))
        return segment.start, segment.end

    def copy_out(self, offset: int, size: int) -> FileSlice:
        """The bytes at ``offset``, flushed or not."""
        return self._slice(self._segments, offset, size, self.end_offset)

    # -- what the leader's answers do -----------------------------------------------------------------------------

    def copy_in(self, data: memoryview, segment_start: int) -> None:
        """Append the whole entries among the leader's bytes. Raises InvalidMessageSize if there is none."""
        entries = bytes(data)
        summary = validate_set(entries, deep=False)
        if not summary.size:
            raise InvalidMessageSize(f"{self.where}: no whole entry in {len(entries)} bytes at {self.end_offset}")
        self._begins_at = segment_start
        super().append(entries[: summary.size], summary.n_messages)

    def told(self, watermark: int, log_start: int) -> None:
        """Take over the leader's watermark, and delete what it has deleted."""
        self.watermark = min(watermark, self.end_offset)
        if log_start > self._leader_start:
            self._leader_start = log_start
            self.retain(by_age=False, at_most=1 << 30, forget=self._write_down)

    def cut(self, offset: int) -> None:
        """Forget everything from ``offset`` on: first in the notes for the next start, then in the files."""
        with self._flushing:
            with self._lock:
                kept = [segment for segment in self._segments if segment.start < offset]
                gone = [segment for segment in self._segments if segment.start >= offset]
                last = kept[-1]
                last.size = min(last.size, offset - last.start)
                self._settle(SegmentList(kept, self._segments.whole_from), gone, offset)
            self._write_down()
            os.truncate(last.path, last.size)
            self._remove_all(gone)

    def restart_at(self, offset: int) -> None:
        """Forget everything; the next byte is ``offset``."""
        with self._flushing:
            with self._lock:
                gone = list(self._segments)
                first = Segment(offset, self.directory / segment_name(offset), 0, self._clock.wall_ms())
                self._settle(SegmentList([first]), gone, offset)
            self._write_down()
            self._remove_all([segment for segment in gone if segment.path != first.path])
            first.make()
            os.truncate(first.path, 0)
            self._leader_start = offset

    def _settle(self, segments: SegmentList, gone: list[Segment], end: int) -> None:
        for segment in (*segments, *gone):
            segment.close()
        self._segments = segments
        self.end_offset = end
        self.flushed_offset = min(self.flushed_offset, end)
        self.watermark = min(self.watermark, end)
        self.n_unflushed = 0
        if not segments.active.size:
            self.flushed_offset = self.watermark = end

    def _remove_all(self, segments: list[Segment]) -> None:
        for segment in segments:
            self._remove(segment.path)
        sync_directory(self.directory)

    # -- the rules of Log that the leader decides -----------------------------------------------------------------

    def _should_roll(self) -> bool:
        return super()._should_roll() if self._role.leads else self._begins_at == self.end_offset

    def _too_old_or_too_many(self, by_age: bool) -> tuple[int, str]:
        if self._role.leads:
            return super()._too_old_or_too_many(by_age)
        return sum(segment.end <= self._leader_start for segment in self._segments), "leader"
