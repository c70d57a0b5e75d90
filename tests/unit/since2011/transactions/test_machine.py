"""The transaction machine, rule by rule; see docs/transactions.md."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
    TimedOut,
    Unused,
    Write,
    Written,
)
from since2011.transactions.machine import Known, step, verdict
from since2011.transactions.transaction import State, Transaction
from since2011.wire.error_codes import ErrorCode

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
NOW = 1_000_000
AT_REST = Transaction("id", 7, 3, timeout_ms=60_000, state=State.COMPLETE_COMMIT, start_ms=5, update_ms=6)
ONGOING = replace(AT_REST, state=State.ONGOING, partitions=frozenset({P0, P1}), start_ms=NOW - 10)


def take(known: Known | None, event: Event, now_ms: int = NOW) -> tuple[Known | None, list[Action]]:
    return step("id", known, event, now_ms)


def done(known: Known | None, event: Event) -> tuple[Known, list[Action]]:
    """Take an event that writes a record, and let it be written."""
    known, actions = take(known, event)
    assert any(isinstance(each, Write) for each in actions), actions
    known, more = take(known, Written())
    assert known is not None
    return known, more


def error_of(known: Known | None, event: Event) -> ErrorCode:
    after, actions = take(known, event)
    assert after == known, "a refusal changes nothing"
    (answer,) = actions
    assert isinstance(answer, Answer)
    return answer.error


def test_a_new_id_gets_a_new_producer_id_and_epoch_0() -> None:
    """The answer comes when the record is written (§8.2, §8.3)."""
    asked = Initialize("me", 60_000)
    nothing, (need,) = take(None, asked)
    assert nothing is None
    assert NeedProducerId(asked) == need
    known, (answer,) = done(None, replace(asked, fresh_producer_id=9))

    assert Answer("me", ErrorCode.NONE, 9, 0) == answer
    assert State.EMPTY is known.current.state


@pytest.mark.parametrize(
    ("had", "epoch", "last"),
    [(None, 4, -1), ((7, 3), 4, 3)],
    ids=["a new instance", "the same after an error"],
)
def test_the_next_instance_gets_the_next_epoch(had: tuple[int, int] | None, epoch: int, last: int) -> None:
    """A client that says whom it was is remembered: its retry is known by that (rows 10, 11; KIP-360)."""
    known, (answer,) = done(Known(AT_REST), Initialize("me", 60_000, had))

    assert Answer("me", ErrorCode.NONE, 7, epoch) == answer
    assert last == known.current.last_epoch


def test_a_retry_of_a_lost_answer_gets_the_same_epoch() -> None:
    """Row 12: the epoch of before the last InitProducerId is named again."""
    known, _ = done(Known(AT_REST), Initialize("me", 60_000, (7, 3)))
    _, (answer,) = done(known, Initialize("me", 60_000, (7, 3)))

    assert Answer("me", ErrorCode.NONE, 7, 4) == answer


@pytest.mark.parametrize("had", [(8, 3), (7, 2), (7, 4)], ids=["another producer", "older", "newer"])
def test_who_is_not_the_one_is_fenced(had: tuple[int, int]) -> None:
    """Rows 6 and 13."""
    assert error_of(Known(AT_REST), Initialize("me", 60_000, had)) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("had", [None, (7, 32_766)])
def test_after_the_last_epoch_comes_a_new_producer_id(had: tuple[int, int] | None) -> None:
    """Row 9: 32767 is kept to fence with; the retry of a lost answer is known by the old id."""
    known = Known(replace(AT_REST, epoch=32_766))
    asked = Initialize("me", 60_000, had)
    same, (need,) = take(known, asked)
    assert (known, NeedProducerId(asked)) == (same, need)
    after, (answer,) = done(known, replace(asked, fresh_producer_id=99))

    assert Answer("me", ErrorCode.NONE, 99, 0) == answer
    assert (7, -1 if had is None else 32_766) == (after.current.last_producer_id, after.current.last_epoch)
    if had is not None:
        _, (again,) = done(after, asked)
        assert Answer("me", ErrorCode.NONE, 99, 0) == again


def test_an_epoch_that_is_not_the_last_one_is_fenced_at_the_end() -> None:
    """Row 13 with an exhausted epoch: 90, where real Kafka fails with an unknown error (corrections)."""
    known = Known(replace(AT_REST, epoch=32_766))

    assert error_of(known, Initialize("me", 60_000, (7, 5))) == ErrorCode.PRODUCER_FENCED


def test_a_take_over_costs_two_epochs() -> None:
    """Row 8: the open transaction is aborted with a raised epoch, and the client told to come again."""
    known, first = done(Known(ONGOING), Initialize("me", 60_000))
    assert [Answer("me", ErrorCode.CONCURRENT_TRANSACTIONS, 7, 4), Mark(7, 4, False, frozenset({P0, P1}))] == first
    assert error_of(known, Initialize("me", 60_000)) == ErrorCode.CONCURRENT_TRANSACTIONS
    known = completed(known, 4)
    _, (answer,) = done(known, Initialize("me", 60_000))

    assert Answer("me", ErrorCode.NONE, 7, 5) == answer


def completed(known: Known, epoch: int) -> Known:
    """Let all markers be written."""
    for partition in sorted(known.current.partitions):
        after, actions = take(known, Marked(7, epoch, partition))
        assert after is not None
        known = after
    assert any(isinstance(each, Write) for each in actions)
    after, actions = take(known, Written())
    assert after is not None
    assert actions == []
    assert not after.current.partitions
    return after


def test_a_fence_that_could_not_be_written_does_not_raise_the_epoch_twice() -> None:
    """The raised epoch is known at once and stays; the next try uses it (corrections, §8.2)."""
    known, _ = take(Known(ONGOING), TimedOut(), NOW + 100_000)
    assert known is not None
    assert known.current.epoch == 4, "the zombie is refused from now on"
    known, _ = take(known, NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert known is not None
    assert State.ONGOING is known.current.state
    known, _ = take(known, TimedOut(), NOW + 100_000)

    assert known is not None
    assert known.current.epoch == 4


@pytest.mark.parametrize("event", [AddPartitions("me", 7, 3, frozenset({P0})), End("me", 7, 3, commit=True)])
def test_one_change_at_a_time(event: Event) -> None:
    """While a record is being written everything else is told to come again (§8.1)."""
    busy, _ = take(Known(ONGOING), AddPartitions("other", 7, 3, frozenset({TopicPartition("u", 0)})))

    assert error_of(busy, event) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert error_of(busy, Initialize("me", 60_000)) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert (busy, []) == take(busy, TimedOut(), NOW + 100_000)
    assert (busy, []) == take(busy, Unused())


def test_a_change_counts_when_its_record_is_written() -> None:
    """Before, the partition is not part of the transaction; after a failure it never is (§8.2)."""
    known, (write,) = take(Known(AT_REST), AddPartitions("me", 7, 3, frozenset({P0})))
    assert isinstance(write, Write)
    assert verdict(known, 7, 3, P0) == ErrorCode.TRANSACTION_ABORTABLE
    written, _ = take(known, Written())
    failed, (answer,) = take(known, NotWritten(ErrorCode.NOT_COORDINATOR))

    assert verdict(written, 7, 3, P0) == ErrorCode.NONE
    assert verdict(failed, 7, 3, P0) == ErrorCode.TRANSACTION_ABORTABLE
    assert Answer("me", ErrorCode.NOT_COORDINATOR) == answer


def test_the_time_counts_from_the_first_partition() -> None:
    """More partitions do not extend it, and nothing new needs no record (§8.2, §8.8)."""
    known, _ = done(Known(ONGOING), AddPartitions("me", 7, 3, frozenset({TopicPartition("u", 0)})))

    assert known.current.start_ms == NOW - 10
    assert (known, [Answer("me", ErrorCode.NONE)]) == take(known, AddPartitions("me", 7, 3, frozenset({P0})))
    assert (known, []) == take(known, TimedOut(), NOW + 59_990)
    assert take(known, TimedOut(), NOW + 59_991)[1]


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        (State.EMPTY, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (State.PREPARE_COMMIT, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE),
        (State.PREPARE_ABORT, ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS),
        (State.COMPLETE_COMMIT, ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE),
        (State.COMPLETE_ABORT, ErrorCode.INVALID_TXN_STATE, ErrorCode.NONE),
    ],
)
def test_an_end_that_is_asked_for_again(state: State, commit: ErrorCode, abort: ErrorCode) -> None:
    """The table of §8.5."""
    known = Known(replace(ONGOING, state=state))

    assert (commit, abort) == tuple(error_of(known, End("me", 7, 3, commit=each)) for each in (True, False))


@pytest.mark.parametrize("event", [AddPartitions("me", 8, 3, frozenset({P0})), End("me", 8, 3, commit=True)])
def test_who_may_speak_for_an_id(event: AddPartitions | End) -> None:
    """Unknown id or producer 49, another epoch 90 (§8.4, §8.5)."""
    fenced = replace(event, producer_id=7, epoch=2)

    assert error_of(None, event) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error_of(Known(ONGOING), event) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error_of(Known(ONGOING), fenced) == ErrorCode.PRODUCER_FENCED


def test_a_decision_is_answered_and_carried_out() -> None:
    """Answer 0 when it is written, then markers; markers of another epoch or a second one change nothing (§8.5)."""
    known, actions = done(Known(ONGOING), End("me", 7, 3, commit=True))
    assert [Answer("me", ErrorCode.NONE, 7, 3), Mark(7, 3, True, frozenset({P0, P1}))] == actions
    assert (known, []) == take(known, Marked(7, 2, P0))
    once, _ = take(known, Marked(7, 3, P0))
    assert (once, []) == take(once, Marked(7, 3, P0))

    assert State.COMPLETE_COMMIT is completed(known, 3).current.state


def test_complete_is_written_until_it_is() -> None:
    """15 from the log is tried again for ever; 16 ends it, the new coordinator does the work again (corrections)."""
    known, _ = done(Known(replace(ONGOING, partitions=frozenset({P0}))), End("me", 7, 3, commit=False))
    known_, (write,) = take(known, Marked(7, 3, P0))
    assert isinstance(write, Write)
    same, (again,) = take(known_, NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    given_up, nothing = take(known_, NotWritten(ErrorCode.NOT_COORDINATOR))

    assert (known_, Write(write.value, again=True)) == (same, again)
    assert nothing == []
    assert given_up is not None
    assert given_up.pending is None


@pytest.mark.parametrize("state", list(State)[:6])
def test_recovery_carries_out_decisions_only(state: State) -> None:
    """Prepare* read from the log: markers to every partition; everything else waits for its producer (§8.9)."""
    known = Known(replace(ONGOING, state=state))
    _, actions = take(known, Recovered())
    expected = [Mark(7, 3, state is State.PREPARE_COMMIT, frozenset({P0, P1}))] if "PREPARE" in state.name else []

    assert expected == actions


def test_an_unused_id_is_forgotten() -> None:
    """A tombstone, then nothing is known; not while a transaction is open (§8.2, §8.8)."""
    known, (write,) = take(Known(AT_REST), Unused())
    assert Write(None) == write
    gone, _ = take(known, Written())

    assert gone is None
    assert (Known(ONGOING), []) == take(Known(ONGOING), Unused())


def test_a_leader_is_told_what_belongs_to_a_transaction() -> None:
    """KIP-890: 49, 90, 51 while it ends, 120 for what was not added (§8.6)."""
    ending = Known(replace(ONGOING, state=State.PREPARE_ABORT))

    assert [
        verdict(None, 7, 3, P0),
        verdict(Known(ONGOING), 7, 2, P0),
        verdict(ending, 7, 3, P0),
        verdict(Known(ONGOING), 7, 3, P0),
        verdict(Known(ONGOING), 7, 3, TopicPartition("u", 0)),
    ] == [
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NONE,
        ErrorCode.TRANSACTION_ABORTABLE,
    ]
