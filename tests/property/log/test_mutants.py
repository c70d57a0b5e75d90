"""The track record of the log machine: every one of these bugs, most of them real ones of 2011, is caught by it."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable
from contextlib import AbstractContextManager
from unittest.mock import patch

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from kafka2011.errors import Kafka2011Error
from kafka2011.log import notes, recovery
from kafka2011.log.descriptors import WRITING
from kafka2011.log.directory import Marker
from kafka2011.log.log import Log
from kafka2011.log.recovery import Recovery
from kafka2011.log.segment import FileSlice, Segment
from kafka2011.log.segment_list import SegmentList
from kafka2011.wire import SetSummary
from tests.property.log import machine
from tests.property.log.machine import LogMachine, quick

Mutant = AbstractContextManager[object]

_hunt = settings(quick, max_examples=200, phases=[Phase.generate], report_multiple_bugs=False)


def short_write_begins_again() -> Mutant:
    """KAFKA-309: after a short write the buffer is written again from its start."""

    def append(self: Segment, data: bytes) -> None:
        file = WRITING.take(self, os.O_RDWR)
        written = os.pwrite(file.fd, data, self.size)
        while written < len(data):
            written += os.pwrite(file.fd, data[: len(data) - written], self.size + written)
        WRITING.give_back(file)
        self._unsynced = True
        self.size += len(data)

    return patch.object(Segment, "append", append)


def trailing_garbage_is_appended() -> Mutant:
    """KAFKA-310: bytes after the last whole message get into the log."""
    real = machine.validate_set
    return patch.object(machine, "validate_set", lambda data: SetSummary(len(data), real(data).n_messages, 1, 0))


def visible_before_flush() -> Mutant:
    """A message is exposed as soon as it is written."""
    real = Log.append

    def append(self: Log, data: bytes, n_messages: int) -> tuple[int, int]:
        result = real(self, data, n_messages)
        self.flushed_offset = self.end_offset
        return result

    return patch.object(Log, "append", append)


def torn_tail_stays() -> Mutant:
    """Recovery finds the torn tail and leaves it."""
    return patch.object(Recovery, "_truncate", lambda *args: None)


def recovery_checks_no_crc() -> Mutant:
    """Recovery believes lengths."""

    def lengths_only(fd: int, pos: int, end: int) -> int:
        while end - pos >= 4:
            n = int.from_bytes(os.pread(fd, 4, pos), "big")
            if n < 5 or n > end - pos - 4:
                break
            pos += 4 + n
        return pos

    return patch.object(recovery, "intact_until", lengths_only)


def recovery_condition_reversed() -> Mutant:
    """KAFKA-673: recovery runs after a clean stop and not after a crash."""
    real, reverse = notes.take_marker, {Marker.NONE: Marker.OURS, Marker.OURS: Marker.NONE}
    return patch.object(notes, "take_marker", lambda directory: reverse[real(directory)])


def retention_resets_the_offset() -> Mutant:
    """When everything expired, the log begins again at 0."""
    real = Log.retain

    def retain(self: Log, **how: object) -> int:
        n = real(self, **how)  # type: ignore[arg-type]
        if n and self.first_offset == self.end_offset:
            self.flushed_offset = self.end_offset = 0
        return n

    return patch.object(Log, "retain", retain)


def retention_takes_unflushed_segments() -> Mutant:
    """Age alone decides, flushed or not."""

    def choose(self: Log, by_age: bool) -> tuple[int, str]:
        now = self._clock.wall_ms()
        return sum(now - s.last_append_ms > self._settings.retention_ms for s in self._segments), "age"

    return patch.object(Log, "_too_old_or_too_many", choose)


def boundary_off_by_one() -> Mutant:
    """The first byte of a segment is looked for in the one before."""
    return patch.object(
        SegmentList, "holding", lambda self, offset: self._segments[max(0, bisect_left(self._starts, offset) - 1)]
    )


def failed_write_is_not_cut_back() -> Mutant:
    """A write that failed in the end leaves its bytes in the file."""
    return patch.object(Segment, "_cut_back", lambda self, fd: None)


def damage_is_truncated() -> Mutant:
    """The paper's recovery: everything after the first bad CRC goes, flushed or not."""
    return patch.object(Recovery, "_is_damage", lambda *args: False)


def end_is_out_of_range() -> Mutant:
    """A reader that is up to date gets an error, not an empty answer."""
    real = Log.read

    def read(self: Log, offset: int, max_size: int) -> FileSlice:
        if offset == self.flushed_offset:
            raise self._out_of_range(offset)
        return real(self, offset, max_size)

    return patch.object(Log, "read", read)


def flush_forgets_earlier_segments() -> Mutant:
    """After a roll the mark counts from the active segment only."""
    real = Log.flush

    def flush(self: Log) -> int:
        real(self)
        self.flushed_offset = self._segments.active.size
        return self.flushed_offset

    return patch.object(Log, "flush", flush)


MUTANTS: list[Callable[[], Mutant]] = [
    short_write_begins_again,
    trailing_garbage_is_appended,
    visible_before_flush,
    torn_tail_stays,
    recovery_checks_no_crc,
    recovery_condition_reversed,
    retention_resets_the_offset,
    retention_takes_unflushed_segments,
    boundary_off_by_one,
    failed_write_is_not_cut_back,
    damage_is_truncated,
    end_is_out_of_range,
    flush_forgets_earlier_segments,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_machine_kills(mutant: Callable[[], Mutant]) -> None:
    """A log with this bug does not survive the machine (docs/reliability.md)."""
    with mutant(), pytest.raises((AssertionError, Kafka2011Error)):
        run_state_machine_as_test(LogMachine, settings=_hunt)
