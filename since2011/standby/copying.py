"""What passes between a leader's log and its copy: the leader's answer, and what a member does with it.

The rules where histories part are ``since2011.replication.truncation``'s. Logs are arguments: the broker's on disk, or
the simulator's in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from kafka2011.types import TopicPartition
from since2011.log.epoch_history import UNDEFINED, EpochHistory
from since2011.replication.truncation import cut
from since2011.standby.follow import NOT_PARTING, Part, Position


class LedLog(Protocol):
    """A leader's log as its followers read it."""

    @property
    def first_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def watermark(self) -> int: ...
    def segment_at(self, offset: int) -> tuple[int, int]:
        """Where the segment file that holds ``offset`` begins and ends."""


class CopiedLog(Protocol):
    """A member's log as its leader's answers change it."""

    @property
    def first_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    def cut(self, offset: int) -> None:
        """Forget everything from ``offset`` on."""

    def restart_at(self, offset: int) -> None:
        """Forget everything; the next byte is ``offset``."""

    def copy_in(self, data: memoryview, segment_start: int) -> None:
        """Append whole entries, in a segment that begins where the leader's does."""

    def told(self, watermark: int, log_start: int) -> None:
        """The leader's watermark, and the first offset it has."""


def part_for(where: TopicPartition, at: Position | None, log: LedLog, history: EpochHistory, most: int) -> Part | None:
    """What to tell a member that is ``at`` a position; None if it knows everything."""
    start = log.first_offset
    segment_start = log.segment_at(log.end_offset)[0]
    nothing = Part(where, NOT_PARTING, log.watermark, start, segment_start, history.latest, log.end_offset, 0)
    if at is None:
        return nothing
    parting = _parting(at, log, history)
    if parting != NOT_PARTING:
        return nothing._replace(parting=parting)
    if start <= at.offset < log.end_offset:
        epoch = history.epoch_at(at.offset)
        epoch_end = history.end_offset(epoch, log.end_offset)[1] if epoch >= 0 else log.end_offset
        segment_start, segment_end = log.segment_at(at.offset)
        size = min(most, epoch_end - at.offset, segment_end - at.offset)
        if size > 0:
            return nothing._replace(segment_start=segment_start, epoch=epoch, offset=at.offset, size=size)
    told = at.offset >= start and at.watermark == min(log.watermark, at.offset) and at.log_start >= start
    return None if told else nothing


def _parting(at: Position, log: LedLog, history: EpochHistory) -> tuple[int, int]:
    """Where the member's history leaves ours, as ``truncation.cut`` wants it."""
    if at.last_epoch < 0:
        return NOT_PARTING if at.offset <= log.first_offset else UNDEFINED
    epoch, end = history.end_offset(at.last_epoch, log.end_offset)
    return NOT_PARTING if epoch == at.last_epoch and at.offset <= end else (epoch, end)


def offsets_told(
    positions: Mapping[TopicPartition, Position],
    logs: Mapping[TopicPartition, LedLog],
    history_of: Callable[[TopicPartition], EpochHistory],
) -> dict[TopicPartition, int]:
    """How far a member has come, where its history is ours: elsewhere what it has is not progress (KAFKA-13141)."""
    return {
        where: at.offset
        for where, at in positions.items()
        if where in logs and _parting(at, logs[where], history_of(where)) == NOT_PARTING
    }


def take(part: Part, data: memoryview, log: CopiedLog, history: EpochHistory) -> None:
    """Do with a member's log what its leader's answer asks for."""
    if part.parting != NOT_PARTING:
        parts_at = cut(history, log.end_offset, 0, part.parting).offset
        if parts_at <= log.first_offset:
            _restart(part.log_start, log, history)
        else:
            # The log first: entries of the history beyond its end do no harm, a log beyond its history would.
            log.cut(parts_at)
            history.truncate_end(parts_at)
        return
    if part.log_start > log.end_offset:
        _restart(part.log_start, log, history)
        return
    if part.size and part.offset == log.end_offset:
        if part.epoch > history.latest:
            history.assign(part.epoch, part.offset)
        log.copy_in(data, part.segment_start)
    log.told(part.watermark, part.log_start)


def _restart(offset: int, log: CopiedLog, history: EpochHistory) -> None:
    log.restart_at(offset)
    history.clear()
