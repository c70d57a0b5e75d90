"""ListOffsets: where a partition begins, ends, or was at a time.

Behavior:
- -1 is the end readers see: the high watermark, with isolation level 1 the last stable offset. -2 is the log start, -3
  the first record with the largest timestamp (KIP-734), -4 the earliest on this broker's disk, which is the log start.
- After an election everything but the log start is OFFSET_NOT_AVAILABLE (before version 5 LEADER_NOT_AVAILABLE) until
  what the leader began with is committed: the end readers see never goes back.
- A follower is told the end of the log as -1. Who says that it is a replica and is none is a reader: kafka-python names
  itself 0.
- A time finds the first record stamped then or later; markers of transactions count as records. What readers do not see
  yet is not found: offset and timestamp -1, no error.
- Searching by time opens batches, so it is done in a thread.

Version notes:
- 0, which answers with lists of segments, is not offered.
- 2 isolation level; 4 leader epochs; 6 flexible; 7 knows -3, 8 knows -4, 9 knows -5, which nothing here has.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from since2011.era2011.list_offsets import offset_2011
from since2011.log.log import ModernLog
from since2011.log.time_search import Found, first_at_or_after, largest_timestamp
from since2011.replication.led import Led
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused, refusal

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
_SINCE_VERSION = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
_NOT_FOUND = (-1, -1, -1)


async def list_offsets(modern: ModernBroker, call: Call) -> Struct:
    """Answer for each partition."""
    named = Counter((topic.name, one.index) for topic in call.body.topics for one in topic.partitions)
    topics = []
    for topic in call.body.topics:
        partitions = []
        for one in topic.partitions:
            answer = Struct(index=one.index, error=ErrorCode.NONE)
            try:
                if named[topic.name, one.index] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, f"{topic.name[:250]}-{one.index} is named more than once")
                answer.timestamp, answer.offset, answer.leader_epoch = await _offset(modern, call, topic.name, one)
            except Kafka2011Error as error:
                answer.error, _ = refusal(error)
            partitions.append(answer)
        topics.append(Struct(name=topic.name, partitions=partitions))
    return Struct(topics=topics)


async def _offset(modern: ModernBroker, call: Call, topic: str, one: Struct) -> tuple[int, int, int]:
    """Timestamp, offset and the epoch that wrote it."""
    if not modern.is_modern(topic):
        return *offset_2011(modern, topic, one.index, one.leader_epoch, one.timestamp), 0
    led = modern.topics.led(topic, one.index)
    led.check_epoch(one.leader_epoch)
    if one.timestamp < 0 and call.version < _SINCE_VERSION.get(one.timestamp, 1 << 15):
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"time {one.timestamp} is not known to version {call.version}")
    if led.leader is not None and call.body.replica_id in led.leader.followers:
        end = led.log_end_offset
    else:
        end = led.last_stable_offset if call.body.isolation == 1 else led.high_watermark
        if not led.is_settled and one.timestamp not in (EARLIEST, EARLIEST_LOCAL):
            error = ErrorCode.OFFSET_NOT_AVAILABLE if call.version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
            raise Refused(error, f"{led.key}: the new leader does not know yet how far the last one had come")
    if one.timestamp == LATEST:
        return -1, end, led.leader_epoch
    if one.timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, led.log_start_offset, _epoch_at(led, led.log_start_offset)
    if one.timestamp == LATEST_TIERED or led.log is None:
        return _NOT_FOUND
    found = await modern.searching.do(_Search(modern, led.log, one.timestamp))
    if found is None or found.offset >= end:
        return _NOT_FOUND
    return found.timestamp, found.offset, _epoch_at(led, found.offset)


class _Search:
    """A search by time, to be run in a thread."""

    def __init__(self, modern: ModernBroker, log: ModernLog, timestamp: int) -> None:
        self._inflate, self._log, self._timestamp = modern.validator.inflate, log, timestamp

    def __call__(self) -> Found | None:
        if self._timestamp == MAX_TIMESTAMP:
            return largest_timestamp(self._log, self._inflate)
        return first_at_or_after(self._log, self._timestamp, self._inflate)


def _epoch_at(led: Led, offset: int) -> int:
    return -1 if led.log is None else led.log.epochs.epoch_at(offset)
