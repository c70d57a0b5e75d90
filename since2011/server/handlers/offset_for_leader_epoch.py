"""OffsetForLeaderEpoch: where a leadership ended, so that a reader sees whether its history is still ours (KIP-101).

Behavior:
- The newest leadership not newer than the one asked about, and the offset after its last record; -1 and -1 if nothing
  is known of it. The current leadership ends at the end of the log.

Version notes:
- 2 and older than 2 carry no replica id; 0 and 1, which answer without an epoch, are not offered. 4 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from since2011.era2011.list_offsets import end_of_epoch_2011
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import refusal

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def offset_for_leader_epoch(modern: ModernBroker, call: Call) -> Struct:
    """Answer for each partition."""
    topics = []
    for topic in call.body.topics:
        partitions = []
        for one in topic.partitions:
            answer = Struct(index=one.index, error=ErrorCode.NONE)
            try:
                answer.epoch, answer.end_offset = _end(modern, topic.name, one)
            except Kafka2011Error as error:
                answer.error, _ = refusal(error)
            partitions.append(answer)
        topics.append(Struct(name=topic.name, partitions=partitions))
    return Struct(topics=topics)


def _end(modern: ModernBroker, topic: str, one: Struct) -> tuple[int, int]:
    if not modern.is_modern(topic):
        return end_of_epoch_2011(modern, topic, one.index, one.current_epoch, one.epoch)
    led = modern.topics.led(topic, one.index)
    led.check_epoch(one.current_epoch)
    if led.log is None:
        return (one.epoch, 0) if one.epoch == led.leader_epoch else (-1, -1)
    if one.epoch == led.leader_epoch:
        return one.epoch, led.log.log_end_offset
    return led.log.epochs.end_offset(one.epoch, led.log.log_end_offset)
