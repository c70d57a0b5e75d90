"""Numbers that let a broker store every batch once and in order, however often it is sent. No I/O.

A producer has an id and an epoch (``Identity``); each partition's batches carry sequence numbers. A broker takes a
batch only if its sequence follows the one before, and answers a batch it already has as if it had just stored it. So:

- a sequence is given when a batch is sent for the first time, and stays with it through every retry;
- up to five batches may be under way. After a failure only the first of them is sent again until it is settled, then
  the next: the broker would refuse the others anyway;
- a batch that was refused for good leaves a gap. The producer raises its epoch and numbers what is still under way from
  0 again. In a transaction it cannot know what to do with the gap: the transaction has to be aborted;
- a batch that was given up without an answer may be stored or not (*unresolved*). When nothing else of the partition is
  under way, either the last acknowledged sequence is the last given one, or there is a gap, as above.

The paper's answer (§3.3): "in case of a failed request a producer sends again", and a message may be there twice.
"""

from __future__ import annotations

from since2011.producer.batch import NOBODY, Batch, Identity, PartitionQueue
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import NO_SEQUENCE, advance_sequence, retreat_sequence

MAX_EPOCH = 32767


class Idempotence:
    """The identity of a producer and the sequences of its partitions. Under its producer's lock."""

    def __init__(self, *, transactional: bool) -> None:
        self.transactional = transactional
        self.identity = NOBODY
        self.bump_needed = False
        """Raise the epoch before anything else is sent."""
        self._to_number_again: dict[PartitionQueue, None] = {}
        self._unresolved: dict[PartitionQueue, None] = {}
        self._known: set[PartitionQueue] = set()

    def adopt(self, identity: Identity) -> None:
        """A broker, or a coordinator, has given us an identity."""
        self.identity = identity
        self.bump_needed = False
        if self.transactional:
            # Nothing is under way when a coordinator answers; every partition begins at 0.
            for queue in self._known:
                self._begin_again(queue)
            self._unresolved.clear()
        else:
            self._number_again()

    # -- sending --------------------------------------------------------------------------------------------------

    def may_send(self, queue: PartitionQueue, batch: Batch) -> bool:
        """Whether the first batch of a queue may go now."""
        if not self.identity.valid or self.bump_needed:
            return False
        if batch.sequence == NO_SEQUENCE:
            stale = queue.sequences.identity != self.identity
            return queue not in self._unresolved and not (stale and queue.under_way)
        return not queue.under_way or queue.under_way[0] is batch

    def assign(self, queue: PartitionQueue, batch: Batch) -> None:
        """Number a batch that is sent now; a retry keeps its number."""
        if batch.sequence != NO_SEQUENCE:
            return
        sequences = queue.sequences
        if sequences.identity != self.identity:
            self._begin_again(queue)
        self._known.add(queue)
        batch.identity, batch.sequence = self.identity, sequences.next
        sequences.next = advance_sequence(sequences.next, len(batch))
        queue.under_way.append(batch)

    def enqueue_again(self, queue: PartitionQueue, batch: Batch) -> None:
        """Put a batch that failed back in its place by sequence, in front of those without one."""
        position = 0
        for other in queue.batches:
            if other.sequence == NO_SEQUENCE or _before(batch.sequence, other.sequence):
                break
            position += 1
        queue.batches.insert(position, batch)

    def replace(self, queue: PartitionQueue, batch: Batch, parts: list[Batch]) -> None:
        """A batch was split: its parts have its numbers."""
        at = queue.under_way.index(batch)
        queue.under_way[at : at + 1] = parts

    # -- answers --------------------------------------------------------------------------------------------------

    def stored(self, queue: PartitionQueue, batch: Batch, offset: int) -> None:
        """A broker has the batch."""
        sequences = queue.sequences
        if batch.identity == sequences.identity:
            last = batch.last_sequence
            if sequences.last_acked == NO_SEQUENCE or _before(sequences.last_acked, last):
                sequences.last_acked = last
            if offset >= 0:
                sequences.last_acked_offset = max(sequences.last_acked_offset, offset + len(batch) - 1)
        self._forget(queue, batch)

    def try_again(self, queue: PartitionQueue, batch: Batch, code: ErrorCode, log_start: int) -> bool | None:
        """What the numbers say about a refused batch: True send it again, False do not, None nothing."""
        if code == ErrorCode.UNKNOWN_PRODUCER_ID:
            # The broker has forgotten us, because what we wrote is past retention; or, worse, lost it.
            expected = log_start < 0 or batch.sequence_reset or queue.sequences.last_acked_offset < log_start
            if expected and self.transactional:
                self._begin_again(queue, among_under_way=True)
                return True
            if not self.transactional:
                self._ask_for_bump(queue, batch)
                return True
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            unresolved = queue in self._unresolved
            is_next = batch.sequence == advance_sequence(queue.sequences.last_acked, 1)
            if not unresolved and (batch.sequence_reset or not is_next):
                return True  # one before it failed; it will be right when that one is there
            if not self.transactional:
                if not unresolved or batch.sequence == queue.sequences.unresolved:
                    self._ask_for_bump(queue, batch)
                return True
        return None

    def refused(self, queue: PartitionQueue, batch: Batch) -> None:
        """A batch is certainly not stored, and will not be sent again: its numbers are a gap."""
        self._forget(queue, batch)
        if not self.transactional and batch.identity == self.identity:
            self._ask_for_bump(queue, batch)

    def given_up(self, queue: PartitionQueue, batch: Batch) -> None:
        """A batch may be stored or not, and will not be sent again."""
        self._forget(queue, batch)
        if batch.sequence != NO_SEQUENCE:
            after = advance_sequence(batch.last_sequence, 1)
            queue.sequences.unresolved = after
            self._unresolved[queue] = None

    def resolve(self) -> bool:
        """Look at the unresolved partitions with nothing under way; whether one of them has a gap (transactions)."""
        gap = False
        for queue in [queue for queue in self._unresolved if not queue.under_way]:
            del self._unresolved[queue]
            sequences = queue.sequences
            if advance_sequence(sequences.last_acked, 1) == sequences.next and sequences.last_acked != NO_SEQUENCE:
                continue  # all that were sent are acknowledged: the one given up had been stored after all
            gap = True
            if not self.transactional:
                self._to_number_again[queue] = None
                self.bump_needed = True
        return gap

    # -- epochs ---------------------------------------------------------------------------------------------------

    def bump(self) -> bool:
        """Raise the epoch here, which needs no broker; False if the epochs are used up and a new id is needed."""
        if not self.bump_needed:
            return True
        if self.identity.epoch >= MAX_EPOCH:
            self.identity = NOBODY
            return False
        self.identity = Identity(self.identity.id, self.identity.epoch + 1)
        self.bump_needed = False
        self._number_again()
        return True

    def _ask_for_bump(self, queue: PartitionQueue, batch: Batch) -> None:
        if batch.identity == self.identity:
            self.bump_needed = True
            self._to_number_again[queue] = None

    def _number_again(self) -> None:
        for queue in self._to_number_again:
            self._unresolved.pop(queue, None)
            self._begin_again(queue, among_under_way=True)
        self._to_number_again.clear()

    def _begin_again(self, queue: PartitionQueue, *, among_under_way: bool = False) -> None:
        sequences = queue.sequences
        sequences.identity, sequences.next = self.identity, 0
        sequences.last_acked = sequences.unresolved = NO_SEQUENCE
        sequences.last_acked_offset = -1
        for batch in queue.under_way if among_under_way else ():
            batch.identity, batch.sequence, batch.sequence_reset = self.identity, sequences.next, True
            sequences.next = advance_sequence(sequences.next, len(batch))

    def _forget(self, queue: PartitionQueue, batch: Batch) -> None:
        if batch in queue.under_way:
            queue.under_way.remove(batch)


def _before(one: int, other: int) -> bool:
    """Whether a sequence comes before another; 2147483647 comes before 0."""
    return retreat_sequence(other, one) - 1 < (1 << 30) and one != other


__all__ = ["Idempotence", "Identity"]
