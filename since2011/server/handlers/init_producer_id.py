"""InitProducerId, and the requests of transactions, which are refused by name.

Behavior:
- Without a transactional id any broker answers: a fresh producer id and epoch 0. Ids come in blocks from the cluster's
  metadata, so no id is given twice, on any broker.
- With one: transactions are not offered yet. The refusal is the code that every client takes as final, so that it says
  so at once instead of trying again for ever.

Version notes:
- 2 flexible; 3 the client names the id and epoch it has had: both, or none, else INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from since2011.server.events import ProducerIdsNotGiven, TransactionRefused
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def init_producer_id(modern: ModernBroker, call: Call) -> Struct:
    """A new producer id, epoch 0, whatever id the client has had."""
    body = call.body
    if body.transactional_id is not None:
        return Struct(error=_no_transactions(modern, call))
    if (body.producer_id < 0) != (body.producer_epoch < 0):
        return Struct(error=ErrorCode.INVALID_REQUEST)
    try:
        return Struct(error=ErrorCode.NONE, producer_id=await modern.producer_ids.next(), epoch=0)
    except (Kafka2011Error, OSError) as error:
        modern.journal.emit(ProducerIdsNotGiven(reason=str(error)))
        return Struct(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)


async def add_partitions_to_txn(modern: ModernBroker, call: Call) -> Struct:
    """Refuse, for every partition."""
    error = _no_transactions(modern, call)
    return Struct(topics=[
        Struct(name=topic.name, partitions=[Struct(index=index, error=error) for index in topic.partitions])
        for topic in call.body.topics
    ])  # fmt: skip


async def add_offsets_to_txn(modern: ModernBroker, call: Call) -> Struct:
    """Refuse."""
    return Struct(error=_no_transactions(modern, call))


async def end_txn(modern: ModernBroker, call: Call) -> Struct:
    """Refuse."""
    return Struct(error=_no_transactions(modern, call))


async def txn_offset_commit(modern: ModernBroker, call: Call) -> Struct:
    """Refuse, for every partition."""
    error = _no_transactions(modern, call)
    return Struct(topics=[
        Struct(name=topic.name, partitions=[Struct(index=p.index, error=error) for p in topic.partitions])
        for topic in call.body.topics
    ])  # fmt: skip


def _no_transactions(modern: ModernBroker, call: Call) -> ErrorCode:
    if call.first_time("transaction"):
        modern.journal.emit(TransactionRefused(client=call.client_id, **call.peer))
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
