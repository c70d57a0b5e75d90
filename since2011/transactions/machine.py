"""The transaction machine: what is known of one transactional id, and an event, make what is known next, and actions.

    -                -> Empty             InitProducerId of an unknown id: a new producer id, epoch 0
    Empty, Complete* -> Empty             InitProducerId: epoch + 1; after the last epoch a new producer id, epoch 0
    Empty, Complete* -> Ongoing           AddPartitions, AddOffsets: the transaction begins
    Ongoing          -> Ongoing           AddPartitions with something new
    Ongoing          -> Prepare*          EndTxn: from the record on, the decision stands
    Ongoing          -> PrepareAbort      InitProducerId, or its time is over: with epoch + 1, which fences
    Prepare*         -> Complete*         every partition has its marker
    Empty, Complete* -> Dead -> -         not used for long: a tombstone, then forgotten

A change takes effect when its record is written; until then it is ``pending`` and every other change is answered
CONCURRENT_TRANSACTIONS. One exception: the epoch that fences is known at once. If its record cannot be written the
epoch stays raised, and the next try does not raise it again (no client has ever had it).

Pure. See docs/transactions.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kafka2011.types import TopicPartition
from since2011.transactions.events import (
    Action,
    AddPartitions,
    Answer,
    End,
    Event,
    Initialize,
    Mark,
    Marked,
    NeedProducerId,
    NotWritten,
    Recovered,
    Token,
    Unused,
    Write,
    Written,
    WrittenOff,
)
from since2011.transactions.transaction import (
    EXHAUSTED_EPOCH,
    FROM,
    LAST_EPOCH,
    NO_EPOCH,
    PREPARED,
    RESTING,
    State,
    Transaction,
)
from since2011.wire.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class Pending:
    """A change whose record is being written, and what its author is told when it is."""

    next: Transaction
    token: Token = None
    then: ErrorCode = ErrorCode.NONE
    fences: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What the coordinator knows of one id."""

    current: Transaction
    pending: Pending | None = None
    fence_failed: bool = False
    """The current epoch was raised to fence, and is not in the log."""


Step = tuple[Known | None, list[Action]]


def step(transactional_id: str, known: Known | None, event: Event, now_ms: int) -> Step:
    """Take one event."""
    match event:
        case Initialize():
            return _initialize(transactional_id, known, event, now_ms)
        case AddPartitions():
            return _add(known, event, now_ms)
        case End():
            return _end(known, event, now_ms)
        case Written():
            return _written(known)
        case NotWritten():
            return _not_written(known, event)
        case Marked():
            return _marked(known, event, now_ms)
        case Recovered():
            return _recovered(known, now_ms)
        case WrittenOff():
            return _written_off(known, event)
        case Unused():
            return _unused(known)
        case _:
            return _timed_out(known, now_ms)


def _changed(known: Known, pending: Pending) -> Step:
    """Begin a change: its record is to be written."""
    assert known.pending is None, "one change at a time"
    assert known.current.state in FROM[pending.next.state], f"{known.current.state} -> {pending.next.state}"
    value = None if pending.next.state is State.DEAD else pending.next
    return replace(known, pending=pending), [Write(value)]


def _refused(known: Known | None, token: Token, error: ErrorCode) -> Step:
    return known, [Answer(token, error)]


# -- InitProducerId ---------------------------------------------------------------------------------------------


def _initialize(transactional_id: str, known: Known | None, event: Initialize, now_ms: int) -> Step:
    if known is None:
        if event.fresh_producer_id is None:
            return None, [NeedProducerId(event)]
        known = Known(Transaction(transactional_id, event.fresh_producer_id, timeout_ms=event.timeout_ms))
    current = known.current
    if known.pending is not None:
        return _refused(known, event.token, ErrorCode.CONCURRENT_TRANSACTIONS)
    if event.expected is not None and not _may_be(current, *event.expected):
        return _refused(known, event.token, ErrorCode.PRODUCER_FENCED)
    if current.state in PREPARED:
        return _refused(known, event.token, ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is State.ONGOING:
        # The transaction that was left is aborted first. The client comes again, and gets an epoch of its own then.
        return _fence(known, now_ms, event.token, ErrorCode.CONCURRENT_TRANSACTIONS)
    expected = None if event.expected is None else event.expected[1]
    if current.is_exhausted and expected in (None, current.epoch):
        if event.fresh_producer_id is None:
            return known, [NeedProducerId(event)]
        last_epoch = NO_EPOCH if expected is None else current.epoch
        given = _given(current, event, now_ms, event.fresh_producer_id, 0, last_epoch)
        return _changed(known, Pending(given, event.token))
    epochs = _next_epochs(current, expected)
    if epochs is None:
        return _refused(known, event.token, ErrorCode.PRODUCER_FENCED)
    return _changed(known, Pending(_given(current, event, now_ms, current.producer_id, *epochs), event.token))


def _may_be(current: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether the client may be the one this id belongs to; its epoch is looked at afterwards."""
    if current.epoch == NO_EPOCH or producer_id == current.producer_id:
        return True
    return producer_id == current.last_producer_id and epoch >= EXHAUSTED_EPOCH


def _next_epochs(current: Transaction, expected: int | None) -> tuple[int, int] | None:
    """The epoch to give out, and the one to remember; None: a newer instance has this id (KIP-360)."""
    if expected is None:
        return current.epoch + 1, NO_EPOCH
    if current.epoch == NO_EPOCH or (expected == current.epoch and not current.is_exhausted):
        return current.epoch + 1, current.epoch
    if expected == current.last_epoch:
        return current.epoch, current.last_epoch  # its answer was lost
    return None


def _given(
    current: Transaction, event: Initialize, now_ms: int, producer_id: int, epoch: int, last_epoch: int
) -> Transaction:
    return replace(
        current,
        producer_id=producer_id,
        epoch=epoch,
        last_producer_id=current.producer_id,
        last_epoch=last_epoch,
        timeout_ms=event.timeout_ms,
        state=State.EMPTY,
        partitions=frozenset(),
        start_ms=-1,
        update_ms=now_ms,
    )


def _fence(known: Known, now_ms: int, token: Token, then: ErrorCode) -> Step:
    epoch = known.current.epoch if known.fence_failed else min(known.current.epoch + 1, LAST_EPOCH)
    raised = replace(known, current=replace(known.current, epoch=epoch, last_epoch=NO_EPOCH))
    aborting = replace(raised.current, state=State.PREPARE_ABORT, update_ms=now_ms)
    return _changed(raised, Pending(aborting, token, then, fences=True))


# -- the transaction --------------------------------------------------------------------------------------------


def _wrong(known: Known | None, producer_id: int, epoch: int) -> ErrorCode:
    """Why somebody may not speak for this id, or not now."""
    if known is None or known.current.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.current.epoch != epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE if known.pending is None else ErrorCode.CONCURRENT_TRANSACTIONS


def _add(known: Known | None, event: AddPartitions, now_ms: int) -> Step:
    error = _wrong(known, event.producer_id, event.epoch)
    if known is None or error:
        return _refused(known, event.token, error)
    current = known.current
    if current.state in PREPARED:
        return _refused(known, event.token, ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is State.ONGOING and event.partitions <= current.partitions:
        return _refused(known, event.token, ErrorCode.NONE)
    start_ms = now_ms if current.state in RESTING else current.start_ms
    wider = replace(
        current,
        state=State.ONGOING,
        partitions=current.partitions | event.partitions,
        start_ms=start_ms,
        update_ms=now_ms,
    )
    return _changed(known, Pending(wider, event.token))


_ENDED: dict[tuple[State, bool], ErrorCode] = {
    (State.PREPARE_COMMIT, True): ErrorCode.CONCURRENT_TRANSACTIONS,
    (State.PREPARE_ABORT, False): ErrorCode.CONCURRENT_TRANSACTIONS,
    (State.COMPLETE_COMMIT, True): ErrorCode.NONE,
    (State.COMPLETE_ABORT, False): ErrorCode.NONE,
}
"""What who ends a transaction again is told; everything else does not fit the state."""


def _end(known: Known | None, event: End, now_ms: int) -> Step:
    error = _wrong(known, event.producer_id, event.epoch)
    if known is None or error:
        return _refused(known, event.token, error)
    if known.current.state is not State.ONGOING:
        found = _ENDED.get((known.current.state, event.commit), ErrorCode.INVALID_TXN_STATE)
        return _refused(known, event.token, found)
    state = State.PREPARE_COMMIT if event.commit else State.PREPARE_ABORT
    return _changed(known, Pending(replace(known.current, state=state, update_ms=now_ms), event.token))


def _timed_out(known: Known | None, now_ms: int) -> Step:
    if known is None or known.pending is not None or not is_over(known.current, now_ms):
        return known, []
    return _fence(known, now_ms, None, ErrorCode.NONE)


def is_over(current: Transaction, now_ms: int) -> bool:
    """Whether an open transaction has had its time, counted from its first partition."""
    return current.state is State.ONGOING and current.start_ms + current.timeout_ms < now_ms


def _unused(known: Known | None) -> Step:
    if known is None or known.pending is not None or known.current.state not in RESTING:
        return known, []
    return _changed(known, Pending(replace(known.current, state=State.DEAD, partitions=frozenset())))


# -- records and markers ----------------------------------------------------------------------------------------


def _written(known: Known | None) -> Step:
    assert known is not None, "a record was written for an id nobody knows"
    assert known.pending is not None, "nothing was to be written"
    done, pending = known.pending.next, known.pending
    if done.state is State.DEAD:
        return None, []
    now = replace(known, current=done, pending=None)
    actions: list[Action] = []
    if pending.token is not None:
        actions.append(Answer(pending.token, pending.then, done.producer_id, done.epoch))
    if done.state in PREPARED:
        after, more = _recovered(now, done.update_ms)
        return after, [*actions, *more]
    return now, actions


def _not_written(known: Known | None, event: NotWritten) -> Step:
    assert known is not None, "a record was not written for an id nobody knows"
    assert known.pending is not None, "nothing was to be written"
    pending = known.pending
    if known.current.state in PREPARED and event.error == ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return known, [Write(pending.next, again=True)]
    failed = known.fence_failed or pending.fences
    actions: list[Action] = [] if pending.token is None else [Answer(pending.token, event.error)]
    return replace(known, pending=None, fence_failed=failed), actions


def _recovered(known: Known | None, now_ms: int) -> Step:
    """The decision stands: tell every partition of the transaction, also those that know it already."""
    if known is None or known.current.state not in PREPARED:
        return known, []
    current = known.current
    if not current.partitions:
        return _completed(known, now_ms)
    commit = current.state is State.PREPARE_COMMIT
    return known, [Mark(current.producer_id, current.epoch, commit, current.partitions)]


def _marked(known: Known | None, event: Marked, now_ms: int) -> Step:
    if known is None or known.pending is not None or not _is_marking(known.current, event.producer_id, event.epoch):
        return known, []
    left = known.current.partitions - {event.partition}
    known = replace(known, current=replace(known.current, partitions=left))
    return (known, []) if left else _completed(known, now_ms)


def _is_marking(current: Transaction, producer_id: int, epoch: int) -> bool:
    return current.state in PREPARED and (current.producer_id, current.epoch) == (producer_id, epoch)


def _completed(known: Known, now_ms: int) -> Step:
    state = State.COMPLETE_COMMIT if known.current.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT
    complete = replace(known.current, state=state, partitions=frozenset(), update_ms=now_ms)
    return _changed(replace(known, fence_failed=False), Pending(complete))


def _written_off(known: Known | None, event: WrittenOff) -> Step:
    """The leadership went while a record was being written: another coordinator answers for it now."""
    if known is None or known.pending is None or known.pending.token is None:
        return known, []
    return known, [Answer(known.pending.token, event.error)]


def verdict(known: Known | None, producer_id: int, epoch: int, partition: TopicPartition) -> ErrorCode:
    """Whether a leader may take the first batch of a transaction (KIP-890).

    A pending change is not looked at: the log checks once more while it appends.
    """
    if known is None or known.current.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.current.epoch != epoch:
        return ErrorCode.PRODUCER_FENCED
    if known.current.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE if partition in known.current.partitions else ErrorCode.TRANSACTION_ABORTABLE
