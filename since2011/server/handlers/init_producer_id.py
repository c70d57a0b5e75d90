"""InitProducerId of a producer without transactions.

Behavior:
- Any broker answers: a fresh producer id and epoch 0. Ids come in blocks from the cluster's metadata, so no id is given
  twice, on any broker.
- With a transactional id its coordinator answers (``since2011.transactions``). Where none is installed the refusal is
  the code that every client takes as final, so that it says so at once instead of trying again for ever.

Version notes:
- 2 flexible; 3 the client names the id and epoch it has had: both, or none, else INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from since2011.server.events import ProducerIdsNotGiven
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def init_producer_id(modern: ModernBroker, call: Call) -> Struct:
    """A new producer id, epoch 0, whatever id the client has had."""
    body = call.body
    if body.transactional_id is not None:
        return Struct(error=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if (body.producer_id < 0) != (body.producer_epoch < 0):
        return Struct(error=ErrorCode.INVALID_REQUEST)
    try:
        return Struct(error=ErrorCode.NONE, producer_id=await modern.producer_ids.next(), epoch=0)
    except (Kafka2011Error, OSError) as error:
        modern.journal.emit(ProducerIdsNotGiven(reason=str(error)))
        return Struct(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
