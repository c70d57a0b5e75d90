"""UpdateMetadata: a controller tells which brokers live, and what was decided about partitions.

Behavior:
- The brokers are all there are, and replace those known before; replication reaches leaders at these addresses and
  lets only living brokers into an in-sync set.
- What is said of partitions is not needed: this broker reads it in ZooKeeper, where the controller writes it first.

Version notes:
- 6 only: what brokers of protocol 2.6 are sent. In an endpoint the port stands before the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.types import BrokerAddress
from since2011.server.modern_topics import LISTENER
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def update_metadata(modern: ModernBroker, call: Call) -> Struct:
    """Take over who lives."""
    if not modern.replication.is_clustered:
        return Struct(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    brokers = {}
    for broker in call.body.brokers:
        for endpoint in sorted(broker.endpoints, key=lambda one: one.listener != LISTENER)[:1]:
            brokers[broker.id] = BrokerAddress(broker.id, endpoint.host, endpoint.port)
    return Struct(error=modern.replication.manager.update_metadata(call.body, brokers))
