"""LeaderAndIsr: a controller tells who leads which partition, and which replicas are in sync.

Behavior:
- Partitions are decided one by one, each with its own error (``since2011.replication.manager``); a request of an older
  controller, or for an earlier life of this broker, is refused as a whole, and in each partition.
- Answered when this broker leads or follows: what a thread still cuts off a log is waited for.
- A broker without ZooKeeper has no controller: CLUSTER_AUTHORIZATION_FAILED.

Version notes:
- 4 only: what brokers of protocol 2.6 are sent. Flexible; topic ids came with 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def leader_and_isr(modern: ModernBroker, call: Call) -> Struct:
    """Lead, follow, and say of which partitions that could not be."""
    if not modern.replication.is_clustered:
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        rows = [Struct(topic=t.name, index=one.index, error=error) for t in call.body.topics for one in t.partitions]
        return Struct(error=error, partitions=rows)
    return await modern.replication.manager.leader_and_isr(call.body)
