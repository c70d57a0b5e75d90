"""DescribeTransactions and ListTransactions: what this broker coordinates, for people who look.

Behavior:
- An id nobody has used is 105; one that is being forgotten, too.
- A broker lists its own; whoever wants all asks every broker. Filters that name no state are sent back.

Version notes:
- ListTransactions 1 asks for transactions that have been open for so long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.server.handlers.call import Answer, answer_of
from since2011.transactions.machine import Known
from since2011.transactions.transaction import State, by_topic
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.transactions.service import TransactionService

_BY_WORD = {state.words: state for state in State}


async def describe_transactions(service: TransactionService, call: Call) -> Struct:
    """Answer for each id."""
    return Struct(transactions=[_described(service, name) for name in call.body.transactional_ids])


def _described(service: TransactionService, name: str) -> Struct:
    known = service.coordinator.get(name)
    error = service.error_of(name)
    if not error and (known is None or _is_dying(known)):
        error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    if error or known is None:
        return Struct(
            error=error, transactional_id=name, state="", timeout_ms=0, start_ms=0, producer_id=0, epoch=0, topics=[]
        )
    current = known.current
    return Struct(
        error=ErrorCode.NONE,
        transactional_id=name,
        state=current.state.words,
        timeout_ms=current.timeout_ms,
        start_ms=current.start_ms,
        producer_id=current.producer_id,
        epoch=current.epoch,
        topics=[Struct(name=topic, partitions=numbers) for topic, numbers in by_topic(current.partitions).items()],
    )


def _is_dying(known: Known) -> bool:
    return known.pending is not None and known.pending.next.state is State.DEAD


async def list_transactions(service: TransactionService, call: Call) -> Answer:
    """The ids this broker coordinates, all or those asked for."""
    body = call.body
    if service.is_loading:
        return Struct(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, unknown_state_filters=[], transactions=[])
    states = {_BY_WORD[word] for word in body.state_filters if word in _BY_WORD}
    unknown = [word for word in body.state_filters if word not in _BY_WORD]
    producers, now_ms = set(body.producer_id_filters), service.modern.clock.wall_ms()
    rows = []
    for known in service.coordinator.transactions():
        current = known.current
        if _is_dying(known) or (body.state_filters and current.state not in states):
            continue
        if producers and current.producer_id not in producers:
            continue
        if body.duration_filter >= 0 and not 0 <= current.start_ms <= now_ms - body.duration_filter:
            continue
        rows.append(Struct(transactional_id=current.id, producer_id=current.producer_id, state=current.state.words))
    return answer_of(len(rows), Struct(error=ErrorCode.NONE, unknown_state_filters=unknown, transactions=rows))
