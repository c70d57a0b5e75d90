"""DescribeCluster: the brokers, the cluster's id and its controller.

Version notes:
- 1 the client says whether it means brokers (1) or the controllers of a newer kind of cluster (2), which are not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.server.handlers.metadata import CLUSTER_OPERATIONS, NOT_ASKED
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

_BROKERS = 1


async def describe_cluster(modern: ModernBroker, call: Call) -> Struct:
    """Who is there."""
    kind = call.body.endpoint_type
    if kind != _BROKERS:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if kind == 2 else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        return Struct(error=error, error_message=f"endpoint type {kind}; brokers are {_BROKERS}", endpoint_type=kind)
    asked = call.body.include_cluster_authorized_operations
    brokers = [modern.advertised(broker, call.caller.reached) for broker in modern.view().brokers.values()]
    return Struct(
        error=ErrorCode.NONE,
        endpoint_type=_BROKERS,
        cluster_id=modern.cluster_id,
        controller_id=modern.controller_id(),
        brokers=[Struct(broker_id=b.broker_id, host=b.host, port=b.port, rack=None) for b in brokers],
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NOT_ASKED,
    )
