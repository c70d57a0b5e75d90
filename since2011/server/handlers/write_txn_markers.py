"""WriteTxnMarkers: end transactions in the partitions led here, as a coordinator says (or an administrator).

Behavior:
- Each marker is appended as with acks=all. Offsets that were committed in the transaction count, or are forgotten,
  after that.
- 6 where another broker leads, 3 where nobody knows the partition, 43 for a topic of 2011. A marker of an older
  producer epoch is refused with 47, of an older coordinator with 52.

Version notes:
- 1 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.types import TopicPartition
from since2011.server.markers import Ending
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def write_txn_markers(modern: ModernBroker, call: Call) -> Struct:
    """Answer for each producer and partition."""
    rows = []
    for marker in call.body.markers:
        ending = Ending(marker.producer_id, marker.epoch, marker.commit, marker.coordinator_epoch)
        topics = []
        for topic in marker.topics:
            told = [
                Struct(index=index, error=await _end(modern, TopicPartition(topic.name, index), ending))
                for index in topic.partitions
            ]
            topics.append(Struct(name=topic.name, partitions=told))
        rows.append(Struct(producer_id=marker.producer_id, topics=topics))
    return Struct(markers=rows)


async def _end(modern: ModernBroker, partition: TopicPartition, ending: Ending) -> ErrorCode:
    if not modern.is_modern(partition.topic) and partition.topic in modern.view().topics:
        return ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    return await modern.markers.write(partition, ending)
