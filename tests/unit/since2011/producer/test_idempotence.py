"""Sequence numbers, epochs and gaps, without a broker."""

from __future__ import annotations

import pytest

from since2011.producer.batch import Batch, Identity, PartitionQueue
from since2011.producer.idempotence import MAX_EPOCH, Idempotence
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import MAX_INT

OUT_OF_ORDER, UNKNOWN = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID


@pytest.fixture
def numbers() -> Idempotence:
    made = Idempotence(transactional=False)
    made.adopt(Identity(7, 0))
    return made


@pytest.fixture
def queue() -> PartitionQueue:
    return PartitionQueue("t", 0)


def batch(queue: PartitionQueue, count: int = 1) -> Batch:
    made = Batch(queue, 0.0, 0)
    made.deliveries = [None] * count  # type: ignore[list-item]
    return made


def send(numbers: Idempotence, queue: PartitionQueue, *counts: int) -> list[Batch]:
    found = [batch(queue, count) for count in counts]
    for one in found:
        assert numbers.may_send(queue, one)
        numbers.assign(queue, one)
    return found


def test_sequences_follow_one_another_and_wrap(numbers: Idempotence, queue: PartitionQueue) -> None:
    """Notes, idempotence: each batch begins where the one before ended; 2147483647 is followed by 0."""
    assert [one.sequence for one in send(numbers, queue, 3, 2, 1)] == [0, 3, 5]
    queue.sequences.next = MAX_INT
    assert [one.sequence for one in send(numbers, queue, 2, 1)] == [MAX_INT, 1]


def test_after_a_failure_only_the_first_is_sent_again(numbers: Idempotence, queue: PartitionQueue) -> None:
    """Notes, order under idempotence: retries go one at a time, lowest sequence first, however they failed."""
    first, second, third = send(numbers, queue, 1, 1, 1)
    for failed in (second, third, first):
        numbers.enqueue_again(queue, failed)
    new = batch(queue)
    queue.batches.append(new)

    assert list(queue.batches) == [first, second, third, new]
    assert numbers.may_send(queue, first) and not numbers.may_send(queue, second)
    numbers.stored(queue, first, 0)
    assert numbers.may_send(queue, second)


def test_a_gap_raises_the_epoch_and_numbers_again(numbers: Idempotence, queue: PartitionQueue) -> None:
    """KIP-360: a batch refused for good; those after it get sequences from 0 in the next epoch."""
    first, second, third = send(numbers, queue, 1, 2, 1)
    numbers.refused(queue, first)
    assert not numbers.may_send(queue, second)
    assert numbers.bump() and numbers.identity == Identity(7, 1)

    assert [(one.identity.epoch, one.sequence) for one in (second, third)] == [(1, 0), (1, 2)]
    assert numbers.try_again(queue, second, OUT_OF_ORDER, 0) is True  # the old numbers were still on their way


def test_other_partitions_take_the_new_epoch_when_nothing_is_under_way(numbers: Idempotence) -> None:
    """KIP-360: a partition without a gap finishes what it sent in the old epoch first."""
    gap, other = PartitionQueue("t", 0), PartitionQueue("t", 1)
    (lost,), (fine,) = send(numbers, gap, 1), send(numbers, other, 4)
    numbers.refused(gap, lost)
    numbers.bump()

    assert not numbers.may_send(other, batch(other))
    numbers.stored(other, fine, 0)
    (new,) = send(numbers, other, 1)
    assert (new.identity.epoch, new.sequence) == (1, 0)


def test_out_of_order_behind_a_failed_one_is_sent_again(numbers: Idempotence, queue: PartitionQueue) -> None:
    """Java: refused because the one before it failed; no epoch is raised. If it *is* the next one, there is a gap."""
    first, second = send(numbers, queue, 1, 1)
    assert numbers.try_again(queue, second, OUT_OF_ORDER, 0) is True and not numbers.bump_needed
    numbers.stored(queue, first, 0)
    assert numbers.try_again(queue, second, OUT_OF_ORDER, 0) is True and numbers.bump_needed


@pytest.mark.parametrize("was_stored", [True, False])
def test_a_batch_given_up_without_an_answer(numbers: Idempotence, queue: PartitionQueue, was_stored: bool) -> None:
    """Java, unresolved sequences: nothing new is sent until it is clear whether there is a gap."""
    first, second = send(numbers, queue, 1, 1)
    numbers.given_up(queue, first)
    assert not numbers.may_send(queue, batch(queue))
    if was_stored:
        numbers.stored(queue, second, 1)  # it was taken, so the first had been
        assert not numbers.resolve() and not numbers.bump_needed
    else:
        assert numbers.try_again(queue, second, OUT_OF_ORDER, 0) is True
        assert numbers.bump_needed and numbers.bump()
        assert second.sequence == 0
        numbers.stored(queue, second, 0)
    assert numbers.may_send(queue, batch(queue))


def test_the_last_one_given_up_is_a_gap(numbers: Idempotence, queue: PartitionQueue) -> None:
    """Java: nothing after it tells whether it is stored, so the epoch is raised."""
    (only,) = send(numbers, queue, 1)
    numbers.given_up(queue, only)
    assert numbers.resolve() and numbers.bump_needed


def test_epochs_end(numbers: Idempotence) -> None:
    """KIP-360: after epoch 32767 a new id is asked for."""
    numbers.identity, numbers.bump_needed = Identity(7, MAX_EPOCH), True
    assert not numbers.bump() and not numbers.identity.valid


def test_retention_took_what_the_broker_knew(numbers: Idempotence, queue: PartitionQueue) -> None:
    """UNKNOWN_PRODUCER_ID: the broker forgot; begin anew and send again, in a transaction with the same epoch."""
    transactional = Idempotence(transactional=True)
    transactional.adopt(Identity(7, 3))
    (first,) = send(transactional, queue, 1)
    transactional.stored(queue, first, 10)
    (second,) = send(transactional, queue, 1)

    assert transactional.try_again(queue, second, UNKNOWN, 5) is None, "the log still has ours: something is lost"
    assert transactional.try_again(queue, second, UNKNOWN, 11) is True
    assert (second.identity, second.sequence) == (Identity(7, 3), 0)
