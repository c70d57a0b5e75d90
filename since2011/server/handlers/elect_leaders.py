"""ElectLeaders: let the preferred replica lead, or one that is behind.

Behavior:
- The controller's work: another broker answers NOT_CONTROLLER for the whole request.
- Null asks for all partitions; then those that need no election are not told of, as a real controller does.
- A lone broker without ZooKeeper has one replica of each partition and leads them all: ELECTION_NOT_NEEDED.

Version notes:
- 1 kinds of elections: 0 preferred, 1 unclean; others INVALID_REQUEST. 2 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.types import TopicPartition
from since2011.controller.leadership import elect
from since2011.server.controllership import error_of
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

_PREFERRED, _UNCLEAN = 0, 1
_SENTENCES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition of a modern topic",
    ErrorCode.ELECTION_NOT_NEEDED: "it is led as it should be",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "its first replica is away or not in sync",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "none of its replicas is there",
}


async def elect_leaders(modern: ModernBroker, call: Call) -> Struct:
    """Elect, and tell of each partition what came of it."""
    kind, asked = call.body.election_type, call.body.topic_partitions
    if kind not in (_PREFERRED, _UNCLEAN):
        return Struct(error=ErrorCode.INVALID_REQUEST, results=[])
    topics = modern.topics.image.topics
    if asked is None:
        keys = [TopicPartition(name, at) for name, topic in topics.items() for at in range(len(topic.partitions))]
    else:
        keys = [TopicPartition(topic.topic, index) for topic in asked for index in topic.partitions]
    if modern.controllership is None:
        verdicts = {key: _of_a_lone_broker(modern, key) for key in keys}
    else:
        try:
            verdicts = await modern.controllership.ask(lambda context: elect(context, keys, unclean=kind == _UNCLEAN))
        except Exception as error:
            return Struct(error=error_of(error), results=[])
    results: dict[str, list[Struct]] = {}
    for key, verdict in verdicts.items():
        if asked is not None or verdict is not ErrorCode.ELECTION_NOT_NEEDED:
            row = Struct(partition_id=key.partition, error=verdict, error_message=_SENTENCES.get(verdict))
            results.setdefault(key.topic, []).append(row)
    rows = [Struct(topic=topic, partitions=partitions) for topic, partitions in results.items()]
    return Struct(error=ErrorCode.NONE, results=rows)


def _of_a_lone_broker(modern: ModernBroker, key: TopicPartition) -> ErrorCode:
    known = modern.topics.image.partition(key.topic, key.partition) is not None
    return ErrorCode.ELECTION_NOT_NEEDED if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
