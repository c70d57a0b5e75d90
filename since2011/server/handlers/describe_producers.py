"""DescribeProducers: what a partition knows of its producers, for people who look for transactions that hang.

Behavior:
- Modern topics only: a 2011 log keeps notes about producers beside itself, and has no transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from since2011.replication.led import Led
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import refusal

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def describe_producers(modern: ModernBroker, call: Call) -> Struct:
    """Answer for each partition."""
    topics = []
    for topic in call.body.topics:
        partitions = []
        for index in topic.partitions:
            answer = Struct(index=index, error=ErrorCode.NONE, active_producers=[])
            try:
                answer.active_producers = _producers(modern.topics.led(topic.name, index))
            except Kafka2011Error as error:
                answer.error, answer.error_message = refusal(error)
            partitions.append(answer)
        topics.append(Struct(name=topic.name, partitions=partitions))
    return Struct(topics=topics)


def _producers(led: Led) -> list[Struct]:
    if led.log is None:
        return []
    with led.log.lock:
        return [
            Struct(
                producer_id=producer_id,
                producer_epoch=known.epoch,
                last_sequence=known.last_sequence,
                last_timestamp=known.last_timestamp,
                coordinator_epoch=known.coordinator_epoch,
                current_txn_start_offset=known.current_txn_first_offset,
            )
            for producer_id, known in led.log.producers.producers.items()
        ]
