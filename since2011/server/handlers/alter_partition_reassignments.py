"""AlterPartitionReassignments: move replicas to other brokers.

Behavior:
- The controller's work: another broker answers NOT_CONTROLLER for the whole request.
- Answered when a move has begun; ListPartitionReassignments tells when it is done. Null cancels one that is under way.
- A target with a broker twice, or with one that is not alive: INVALID_REPLICA_ASSIGNMENT, and nothing is moved.
- A lone broker without ZooKeeper moves nothing: only where a partition lies already is no error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.types import TopicPartition
from since2011.controller.reassignment import Target, reassign
from since2011.server.controllership import error_of
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

_SENTENCES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition of a modern topic",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "its replicas are not being moved",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "name brokers that are alive, each once",
}


async def alter_partition_reassignments(modern: ModernBroker, call: Call) -> Struct:
    """Begin or cancel moves; the verdict on each."""
    wanted: dict[TopicPartition, Target | None] = {
        TopicPartition(topic.name, row.partition_index): None if row.replicas is None else tuple(row.replicas)
        for topic in call.body.topics
        for row in topic.partitions
    }
    if modern.controllership is None:
        verdicts = {key: _of_a_lone_broker(modern, key, target) for key, target in wanted.items()}
    else:
        try:
            verdicts = await modern.controllership.ask(lambda context: reassign(context, wanted))
        except Exception as error:
            code = error_of(error)
            return Struct(error=code, error_message=str(error), responses=[])
    rows: dict[str, list[Struct]] = {}
    for key, verdict in verdicts.items():
        row = Struct(partition_index=key.partition, error=verdict, error_message=_SENTENCES.get(verdict))
        rows.setdefault(key.topic, []).append(row)
    responses = [Struct(name=name, partitions=partitions) for name, partitions in rows.items()]
    return Struct(error=ErrorCode.NONE, error_message=None, responses=responses)


def _of_a_lone_broker(modern: ModernBroker, key: TopicPartition, target: Target | None) -> ErrorCode:
    partition = modern.topics.image.partition(key.topic, key.partition)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if target is None:
        return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    return ErrorCode.NONE if target == partition.replicas else ErrorCode.INVALID_REPLICA_ASSIGNMENT
