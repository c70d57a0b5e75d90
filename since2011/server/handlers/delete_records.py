"""DeleteRecords: let a partition begin at a later offset; the files go with the next retention.

Behavior:
- -1 means up to the high watermark. An offset may lie inside a batch: a fetch from there returns the whole batch, and
  clients pass over what they did not ask for.
- The topic's ``cleanup.policy`` must contain ``delete``, else POLICY_VIOLATION. Internal topics are refused, and topics
  of 2011, whose segments go by age and size only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error, OffsetOutOfRange
from since2011.topics.internal import INTERNAL_TOPICS
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused, refusal

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

_TO_THE_END = -1


async def delete_records(modern: ModernBroker, call: Call) -> Struct:
    """Answer for each partition."""
    topics = []
    for topic in call.body.topics:
        partitions = []
        for one in topic.partitions:
            answer = Struct(index=one.index, error=ErrorCode.NONE)
            try:
                answer.low_watermark = _delete(modern, topic.name, one.index, one.offset)
            except Kafka2011Error as error:
                answer.error, _ = refusal(error)
            partitions.append(answer)
        topics.append(Struct(name=topic.name, partitions=partitions))
    return Struct(topics=topics)


def _delete(modern: ModernBroker, topic: str, index: int, offset: int) -> int:
    if topic in INTERNAL_TOPICS:
        raise Refused(ErrorCode.INVALID_TOPIC, f"{topic} is written by brokers")
    if not modern.is_modern(topic) and topic in modern.view().topics:
        raise Refused(ErrorCode.POLICY_VIOLATION, f"{topic} is a topic of 2011: its segments go by age and size")
    led = modern.topics.led(topic, index)
    end = led.high_watermark
    wanted = end if offset == _TO_THE_END else offset
    if not 0 <= wanted <= end:
        raise OffsetOutOfRange(offset, led.log_start_offset, end, f"{topic}-{index}")
    if led.log is None:
        return 0
    if not led.log.config.deletes:
        raise Refused(ErrorCode.POLICY_VIOLATION, f"cleanup.policy of {topic} does not contain delete")
    with led.log.lock:
        led.log.raise_log_start(wanted)
    return led.log.log_start_offset
