"""InitProducerId, and the requests of transactions, which are refused by name.

Spec: modern-group-protocol §14, §15. A transaction needs markers in the log and a 2011 log has no place for one. The
refusal is the code that every client takes as final, so that it says so at once instead of trying again for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consumers.group_protocol.codec import Struct
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.events import TransactionRefused
from consumers.group_protocol.handlers.refusals import refusal
from kafka2011.errors import Kafka2011Error

if TYPE_CHECKING:
    from consumers.group_protocol.handlers.call import Call
    from consumers.group_protocol.service import Modern


async def init_producer_id(modern: Modern, call: Call) -> Struct:
    """A new producer id, epoch 0."""
    if call.body.transactional_id is not None:
        return Struct(error=_no_transactions(modern, call))
    try:
        return Struct(error=ErrorCode.NONE, producer_id=modern.intake.ids.next(), epoch=0)
    except Kafka2011Error as error:
        return Struct(error=refusal(error)[0], producer_id=-1, epoch=-1)


async def add_partitions_to_txn(modern: Modern, call: Call) -> Struct:
    """Refuse, for every partition."""
    error = _no_transactions(modern, call)
    return Struct(topics=[
        Struct(name=topic.name, partitions=[Struct(index=index, error=error) for index in topic.partitions])
        for topic in call.body.topics
    ])  # fmt: skip


async def add_offsets_to_txn(modern: Modern, call: Call) -> Struct:
    """Refuse."""
    return Struct(error=_no_transactions(modern, call))


async def end_txn(modern: Modern, call: Call) -> Struct:
    """Refuse."""
    return Struct(error=_no_transactions(modern, call))


async def txn_offset_commit(modern: Modern, call: Call) -> Struct:
    """Refuse, for every partition."""
    error = _no_transactions(modern, call)
    return Struct(topics=[
        Struct(name=topic.name, partitions=[Struct(index=p.index, error=error) for p in topic.partitions])
        for topic in call.body.topics
    ])  # fmt: skip


def _no_transactions(modern: Modern, call: Call) -> ErrorCode:
    if call.first_time("transaction"):
        modern.journal.emit(TransactionRefused(client=call.client_id, **call.peer))
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
