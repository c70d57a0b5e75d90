"""ElectLeaders: let the preferred replica lead, or one that is behind.

Behavior:
- Every partition has one replica in this release, so its leader is the preferred one as long as its broker lives:
  ELECTION_NOT_NEEDED, or PREFERRED_LEADER_NOT_AVAILABLE where it does not. Nobody else could lead.
- Null asks for all partitions; then those that need no election are not told of, as a real controller does.

Version notes:
- 1 kinds of elections: 0 preferred, 1 unclean; others INVALID_REQUEST. 2 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

_PREFERRED, _UNCLEAN = 0, 1


async def elect_leaders(modern: ModernBroker, call: Call) -> Struct:
    """Tell of each partition why nothing is to be done."""
    if call.body.election_type not in (_PREFERRED, _UNCLEAN):
        return Struct(error=ErrorCode.INVALID_REQUEST, results=[])
    asked = call.body.topic_partitions
    if asked is None:
        topics = modern.topics.image.topics
        asked = [Struct(topic=name, partitions=range(len(topic.partitions))) for name, topic in topics.items()]
    results = []
    for topic in asked:
        rows = [_verdict(modern, topic.topic, index) for index in topic.partitions]
        if call.body.topic_partitions is None:
            rows = [row for row in rows if row.error is not ErrorCode.ELECTION_NOT_NEEDED]
        if rows:
            results.append(Struct(topic=topic.topic, partitions=rows))
    return Struct(error=ErrorCode.NONE, results=results)


def _verdict(modern: ModernBroker, topic: str, index: int) -> Struct:
    image = modern.topics.image
    partition = image.partition(topic, index)
    if partition is None:
        sentence = f"there is no partition {index} of a modern topic {topic[:250]}"
        return _row(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, sentence)
    if partition.leader == partition.replicas[0] and partition.leader in image.brokers:
        return _row(index, ErrorCode.ELECTION_NOT_NEEDED, f"broker {partition.leader} leads it, as it should")
    sentence = f"broker {partition.replicas[0]}, the only one with {topic}-{index}, is away: start it"
    return _row(index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, sentence)


def _row(index: int, error: ErrorCode, sentence: str) -> Struct:
    return Struct(partition_id=index, error=error, error_message=sentence)
