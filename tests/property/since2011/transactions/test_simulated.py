"""Transactions in a simulated world: every promise holds, and planted bugs are caught (issue 28, must show 2).

For each bug the seed with which the checker noticed it is kept below, so that noticing is not left to luck. ``make
sim`` runs 10,000 others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from unittest.mock import PropertyMock, patch

import pytest

from consumers.group_protocol.coordinator.offset_book import CommittedOffset, OffsetBook
from consumers.sim.transactions.runs import many, one
from kafka2011.types import TopicPartition
from since2011.log.producer_state import ProducerState
from since2011.log.transactions import UnstableOffsets
from since2011.transactions import coordinator, machine
from since2011.transactions.coordinator import To, TransactionCoordinator
from since2011.transactions.events import Answer, End, Mark, Token, Write
from since2011.transactions.machine import Known, Pending, Step
from since2011.transactions.transaction import State, Transaction
from since2011.wire.error_codes import ErrorCode

Mutant = AbstractContextManager[object]
N_RUNS = 60


def leaders_do_not_ask() -> Mutant:
    """A batch may begin a transaction its coordinator knows nothing of: it hangs (before KIP-890)."""
    return patch.object(coordinator, "verdict", lambda known, producer_id, epoch, partition: ErrorCode.NONE)


def a_marker_leaves_the_ticket() -> Mutant:
    """What was verified before the marker still counts behind it."""
    real = ProducerState.ended

    def ended(self: ProducerState, header: object, marker: object) -> object:
        kept = dict(self._verifications)
        found = real(self, header, marker)  # type: ignore[arg-type]
        self._verifications |= kept
        return found

    return patch.object(ProducerState, "ended", ended)


def a_take_over_aborts_nothing() -> Mutant:
    """InitProducerId on an open transaction only raises the epoch (franz-go's fake broker, 1398)."""

    def fence(known: Known, now_ms: int, token: Token, then: ErrorCode) -> Step:
        current = known.current
        news = replace(current, state=State.EMPTY, epoch=current.epoch + 1, partitions=frozenset(), start_ms=-1)
        return replace(known, current=news), [Write(news), Answer(token, ErrorCode.NONE, news.producer_id, news.epoch)]

    def written(known: Known | None) -> Step:
        return (known, []) if known is None or known.pending is None else real(known)

    real = machine._written
    return patch.multiple(machine, _fence=fence, _written=written)


def a_fence_keeps_the_epoch() -> Mutant:
    """A transaction that had its time is aborted with the epoch its producer goes on with."""

    def fence(known: Known, now_ms: int, token: Token, then: ErrorCode) -> Step:
        aborting = replace(known.current, state=State.PREPARE_ABORT, update_ms=now_ms)
        return machine._changed(known, Pending(aborting, token, then, fences=True))

    return patch.object(machine, "_fence", fence)


def a_new_coordinator_forgets_decisions() -> Mutant:
    """Prepare* is read from the log and nobody carries it out."""
    real = TransactionCoordinator.elected

    def elected(
        self: TransactionCoordinator, number: int, epoch: int, found: Iterable[Transaction], now_ms: int
    ) -> list[To]:
        real(self, number, epoch, found, now_ms)
        return []

    return patch.object(TransactionCoordinator, "elected", elected)


def a_decision_is_answered_before_it_is_written() -> Mutant:
    """EndTxn is answered, and the crash that follows takes the decision back."""
    real = machine._end

    def end(known: Known | None, event: End, now_ms: int) -> Step:
        after, actions = real(known, event, now_ms)
        if any(isinstance(each, Write) for each in actions):
            actions = [*actions, Answer(event.token, ErrorCode.NONE)]
        return after, actions

    return patch.object(machine, "_end", end)


def markers_before_the_decision_is_written() -> Mutant:
    """The partitions are told what the log does not say yet."""
    real = machine._end

    def end(known: Known | None, event: End, now_ms: int) -> Step:
        after, actions = real(known, event, now_ms)
        if after is not None and any(isinstance(each, Write) for each in actions):
            current = after.current
            actions = [*actions, Mark(current.producer_id, current.epoch, event.commit, current.partitions)]
        return after, actions

    return patch.object(machine, "_end", end)


def only_the_last_partition_is_known() -> Mutant:
    """AddPartitions replaces what was added before."""
    real = machine._add

    def add(known: Known | None, event: machine.AddPartitions, now_ms: int) -> Step:
        after, actions = real(known, event, now_ms)
        if after is not None and after.pending is not None and after is not known:
            only = replace(after.pending.next, partitions=event.partitions)
            return replace(after, pending=replace(after.pending, next=only)), [Write(only)]
        return after, actions

    return patch.object(machine, "_add", add)


def one_marker_is_enough() -> Mutant:
    """The transaction is complete when the first partition has its marker."""

    def marked(known: Known | None, event: machine.Marked, now_ms: int) -> Step:
        if known is None or known.pending is not None:
            return known, []
        if not machine._is_marking(known.current, event.producer_id, event.epoch):
            return known, []
        return machine._completed(known, now_ms)

    return patch.object(machine, "_marked", marked)


def every_end_is_a_commit() -> Mutant:
    """Markers say COMMIT whatever was decided."""
    real = machine._recovered

    def recovered(known: Known | None, now_ms: int) -> Step:
        after, actions = real(known, now_ms)
        return after, [replace(each, commit=True) if isinstance(each, Mark) else each for each in actions]

    return patch.object(machine, "_recovered", recovered)


def a_zombie_may_end_it() -> Mutant:
    """The coordinator does not look at the epoch."""

    def wrong(known: Known | None, producer_id: int, epoch: int) -> ErrorCode:
        if known is None or known.current.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return ErrorCode.NONE if known.pending is None else ErrorCode.CONCURRENT_TRANSACTIONS

    return patch.object(machine, "_wrong", wrong)


def offsets_count_at_once() -> Mutant:
    """TxnOffsetCommit is a commit."""

    def begin(self: OffsetBook, producer_id: int, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self.append(offsets)
        self.settle(offsets)

    return patch.object(OffsetBook, "begin", begin)


def aborted_offsets_count() -> Mutant:
    """The marker's word is not listened to where offsets are."""
    real = OffsetBook.end
    return patch.object(OffsetBook, "end", lambda self, producer_id, committed: real(self, producer_id, committed=True))


def readers_of_offsets_do_not_wait() -> Mutant:
    """OffsetFetch answers the value from before while a transaction is ending (before KIP-447)."""
    return patch.object(OffsetBook, "is_stable", lambda self, partition: True)


def the_last_stable_offset_is_the_end() -> Mutant:
    """Readers of committed records see open transactions."""
    return patch.object(UnstableOffsets, "first", PropertyMock(return_value=None))


def aborts_are_not_listed() -> Mutant:
    """An abort leaves nothing in the transaction index."""
    real = ProducerState.ended

    def ended(self: ProducerState, header: object, marker: object) -> None:
        real(self, header, marker)  # type: ignore[arg-type]

    return patch.object(ProducerState, "ended", ended)


def retries_are_stored_twice() -> Mutant:
    """A record whose answer was lost is written again."""

    def anything(self: ProducerState, header: object, known: object) -> None:
        return None

    return patch.multiple(ProducerState, duplicate_of=lambda self, header: None, _check_sequence=anything)


SEEDS: dict[Callable[[], Mutant], int] = {
    leaders_do_not_ask: 7,
    a_marker_leaves_the_ticket: 101,
    a_take_over_aborts_nothing: 0,
    a_fence_keeps_the_epoch: 59,
    a_new_coordinator_forgets_decisions: 5,
    a_decision_is_answered_before_it_is_written: 189,
    markers_before_the_decision_is_written: 39,
    only_the_last_partition_is_known: 0,
    one_marker_is_enough: 34,
    every_end_is_a_commit: 0,
    a_zombie_may_end_it: 54,
    offsets_count_at_once: 0,
    aborted_offsets_count: 0,
    readers_of_offsets_do_not_wait: 0,
    the_last_stable_offset_is_the_end: 0,
    aborts_are_not_listed: 0,
    retries_are_stored_twice: 0,
}


def test_every_promise_holds() -> None:
    """No aborted read, no lost commit, atomic over partitions and offsets, exactly once, nothing hangs."""
    tally = many(N_RUNS)

    assert not tally.broken
    assert tally.transactions > 20 * N_RUNS
    assert tally.faults > 2 * N_RUNS


def test_the_checker_can_fail() -> None:
    """The control: readers of uncommitted records see what was aborted, in every run."""
    n_broken = len(many(5, committed=False).broken)

    assert n_broken == 5


@pytest.mark.parametrize("mutant", SEEDS, ids=lambda mutant: mutant.__name__)
def test_a_planted_bug_is_caught(mutant: Callable[[], Mutant]) -> None:
    """With the seed that was kept the checker names a broken promise; without the bug it names none."""
    seed = SEEDS[mutant]
    with mutant():
        _, broken = one(seed)
    _, today = one(seed)

    assert broken is not None
    assert today is None
