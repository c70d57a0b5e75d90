"""ListPartitionReassignments: which partitions are being moved, and whereto.

Behavior:
- What the cluster's metadata says: where only brokers of this release are, none. Null asks for all topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def list_partition_reassignments(modern: ModernBroker, call: Call) -> Struct:
    """Tell of those that have replicas coming or going."""
    image, asked = modern.topics.image, call.body.topics
    names = list(image.topics) if asked is None else [topic.name for topic in asked]
    indexes = None if asked is None else {topic.name: set(topic.partition_indexes) for topic in asked}
    topics = []
    for name in names:
        topic = image.topics.get(name)
        rows = [
            Struct(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
            for index, partition in enumerate(() if topic is None else topic.partitions)
            if (partition.adding or partition.removing) and (indexes is None or index in indexes[name])
        ]
        if rows:
            topics.append(Struct(name=name, partitions=rows))
    return Struct(error=ErrorCode.NONE, error_message=None, topics=topics)
