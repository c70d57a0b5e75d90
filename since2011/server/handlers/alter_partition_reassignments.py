"""AlterPartitionReassignments: move replicas to other brokers.

Behavior:
- Moving a partition takes a second replica for a while, and this release has one of each: a partition that is to lie
  where it lies is answered NONE, any other place INVALID_REPLICA_ASSIGNMENT. Nothing is moved.
- Null cancels a move; none is ever under way: NO_REASSIGNMENT_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def alter_partition_reassignments(modern: ModernBroker, call: Call) -> Struct:
    """Tell of each partition why it stays."""
    responses = [
        Struct(name=topic.name, partitions=[_verdict(modern, topic.name, partition) for partition in topic.partitions])
        for topic in call.body.topics
    ]
    return Struct(error=ErrorCode.NONE, error_message=None, responses=responses)


def _verdict(modern: ModernBroker, topic: str, asked: Struct) -> Struct:
    partition = modern.topics.image.partition(topic, asked.partition_index)
    error, sentence = ErrorCode.NONE, None
    if partition is None:
        error, sentence = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no such partition of {topic[:250]}"
    elif asked.replicas is None:
        error, sentence = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no replicas are being moved"
    elif tuple(asked.replicas) != partition.replicas:
        error = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        sentence = f"this release keeps one copy of a partition, and {topic}'s stays on {list(partition.replicas)}"
    return Struct(partition_index=asked.partition_index, error=error, error_message=sentence)
