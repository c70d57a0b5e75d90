"""ListOffsets and OffsetForLeaderEpoch: offsets are 2011 offsets. Spec: modern-group-protocol §1.7.

Messages carry no time, segments do: "the first message at or after t" is the start of the first segment last written at
or after t. That may be earlier than asked for, never later, so nothing is skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consumers.group_protocol.codec import Struct
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.handlers.refusals import Refused, refusal
from kafka2011.errors import Kafka2011Error
from kafka2011.log.log import Log
from kafka2011.wire import EARLIEST, LATEST

if TYPE_CHECKING:
    from consumers.group_protocol.handlers.call import Call
    from consumers.group_protocol.service import Modern

_NO_TIME = -1


async def list_offsets(modern: Modern, call: Call) -> Struct:
    """Where a partition begins, ends, or was at a time."""
    topics = []
    for topic in call.body.topics:
        partitions = []
        for partition in topic.partitions:
            answer = Struct(index=partition.index, error=ErrorCode.NONE, leader_epoch=0)
            try:
                modern.check_leader_epoch(partition.leader_epoch)
                local = modern.local_partition(topic.name, partition.index)
                log = modern.broker.store.get(topic.name, local)
                answer.timestamp, answer.offset = _offset_at(log, partition.timestamp)
            except Kafka2011Error as error:
                answer.error, _ = refusal(error)
            partitions.append(answer)
        topics.append(Struct(name=topic.name, partitions=partitions))
    return Struct(topics=topics)


def _offset_at(log: Log | None, time_ms: int) -> tuple[int, int]:
    """(time, offset); both -1 when nothing was written at or after the time."""
    if time_ms == LATEST:
        return _NO_TIME, log.flushed_offset if log else 0
    if time_ms == EARLIEST:
        return _NO_TIME, log.first_offset if log else 0
    if time_ms < 0:
        raise Refused(ErrorCode.INVALID_REQUEST, f"time {time_ms}: -1 is the end, -2 the beginning")
    for segment in log.segments() if log else ():
        if segment.mtime_ms >= time_ms and segment.flushed_size:
            return segment.mtime_ms, segment.start
    return _NO_TIME, -1


async def offset_for_leader_epoch(modern: Modern, call: Call) -> Struct:
    """Leaders never change here: epoch 0 lasts to the end of the log."""
    topics = []
    for topic in call.body.topics:
        partitions = []
        for partition in topic.partitions:
            answer = Struct(index=partition.index, error=ErrorCode.NONE)
            try:
                modern.check_leader_epoch(partition.current_epoch)
                log = modern.broker.store.get(topic.name, modern.local_partition(topic.name, partition.index))
                if partition.epoch == 0:
                    answer.epoch, answer.end_offset = 0, log.flushed_offset if log else 0
            except Kafka2011Error as error:
                answer.error, _ = refusal(error)
            partitions.append(answer)
        topics.append(Struct(name=topic.name, partitions=partitions))
    return Struct(topics=topics)
