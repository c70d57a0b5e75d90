"""Offsets of 2011 topics by time. See docs/modern-port.md.

Messages carry no time, segments do: "the first message at or after t" is the start of the first segment last written at
or after t. That may be earlier than asked for, never later, so nothing is skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.log.log import Log
from kafka2011.wire import EARLIEST, LATEST
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused

if TYPE_CHECKING:
    from since2011.server.service import ModernBroker

_NO_TIME = -1


def offset_2011(modern: ModernBroker, topic: str, index: int, leader_epoch: int, time_ms: int) -> tuple[int, int]:
    """(time, offset); both -1 when nothing was written at or after the time."""
    modern.check_leader_epoch(leader_epoch)
    return _offset_at(modern.broker.store.get(topic, modern.local_partition(topic, index)), time_ms)


def _offset_at(log: Log | None, time_ms: int) -> tuple[int, int]:
    if time_ms == LATEST:
        return _NO_TIME, log.offsets_before(LATEST, 1)[0] if log else 0
    if time_ms == EARLIEST:
        return _NO_TIME, log.first_offset if log else 0
    if time_ms < 0:
        raise Refused(ErrorCode.INVALID_REQUEST, f"time {time_ms}: -1 is the end, -2 the beginning")
    for segment in log.segments() if log else ():
        if segment.mtime_ms >= time_ms and segment.flushed_size:
            return segment.mtime_ms, segment.start
    return _NO_TIME, -1


def end_of_epoch_2011(modern: ModernBroker, topic: str, index: int, current_epoch: int, epoch: int) -> tuple[int, int]:
    """Leaders never change here: epoch 0 lasts to the end of the log."""
    modern.check_leader_epoch(current_epoch)
    log = modern.broker.store.get(topic, modern.local_partition(topic, index))
    return (0, log.visible_offset if log else 0) if epoch == 0 else (-1, -1)
