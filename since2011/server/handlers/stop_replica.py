"""StopReplica: a controller takes a replica away from this broker, with its log or without.

Behavior:
- Nobody is led or followed any more; with ``delete`` the log goes, its files after ``file.delete.delay.ms``.
- A smaller leader epoch than is known here is FENCED_LEADER_EPOCH: the request was overtaken by a newer decision, and
  a replica that has come back since must not be deleted (KIP-570). -1 and -2 (the topic is being deleted) pass.
- A partition nobody here knows of is answered 0.

Version notes:
- 3 only: what brokers of protocol 2.6 are sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def stop_replica(modern: ModernBroker, call: Call) -> Struct:
    """Stop, and delete what is to be deleted."""
    if not modern.replication.is_clustered:
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        rows = [Struct(topic=t.name, index=one.index, error=error) for t in call.body.topics for one in t.partitions]
        return Struct(error=error, partitions=rows)
    return await modern.replication.manager.stop_replica(call.body)
