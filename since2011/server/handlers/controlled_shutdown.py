"""ControlledShutdown: a broker is about to stop, and asks the controller to let others lead what it leads.

Behavior:
- Answered with the partitions that it still leads because nobody else can; the broker asks again or stops anyway.
- Partitions with one replica are left alone: nothing could be done for them.
- A broker that is not the controller answers STALE_CONTROLLER_EPOCH, a broker nobody knows gets BROKER_NOT_AVAILABLE,
  and what a former life of the broker asked STALE_BROKER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.controller.leadership import shut_down
from since2011.controller.steps import Deposed
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused
from zk_registry.operations import RegistryError

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def controlled_shutdown(modern: ModernBroker, call: Call) -> Struct:
    """Move what the broker leads, and tell what is left."""
    broker, epoch = call.body.broker_id, call.body.broker_epoch
    if modern.controllership is None:
        return Struct(error=ErrorCode.STALE_CONTROLLER_EPOCH, remaining=[])
    try:
        error, left = await modern.controllership.ask(lambda context: shut_down(context, broker, epoch))
    except (Refused, RegistryError, Deposed):
        return Struct(error=ErrorCode.STALE_CONTROLLER_EPOCH, remaining=[])
    return Struct(error=error, remaining=[Struct(topic=key.topic, index=key.partition) for key in left])
