"""What a partition knows of its producers: epochs, the last five batches of each, open transactions (KIP-98, KIP-360).

Checks on a batch of a client with a producer id, in this order:

    same epoch, first and last sequence equal to one of the five  -> duplicate: answered with the stored offset
    begins a transaction its coordinator was not asked about      -> INVALID_TXN_STATE
    epoch lower than the known one                                -> INVALID_PRODUCER_EPOCH
    a batch before it waits until the coordinator has been asked  -> OUT_OF_ORDER_SEQUENCE_NUMBER
    another epoch: its first sequence must be 0                   -> OUT_OF_ORDER_SEQUENCE_NUMBER
    same epoch: the sequence after the last, 0 after 2147483647   -> OUT_OF_ORDER_SEQUENCE_NUMBER
    a transaction is open and the batch is not part of one        -> INVALID_TXN_STATE

Of a producer nothing is known of, any sequence is taken.

Pure. The paper's answer: none; a producer that tries again may store a message twice (§5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from kafka2011.errors import Kafka2011Error
from since2011.log.indexes import Aborted
from since2011.wire.record_batch import BatchHeader, advance_sequence, retreat_sequence
from since2011.wire.records import Marker

KEPT_BATCHES = 5


class OutOfOrderSequence(Kafka2011Error):
    """A batch is missing between this one and the last, or this is an old duplicate."""

    error_code: ClassVar[int] = 45


class InvalidProducerEpoch(Kafka2011Error):
    """A newer instance of this producer has written here."""

    error_code: ClassVar[int] = 47


class InvalidTxnState(Kafka2011Error):
    """The batch does not fit the transaction that is, or is not, open."""

    error_code: ClassVar[int] = 48


class TransactionCoordinatorFenced(Kafka2011Error):
    """A marker of a coordinator that has been replaced."""

    error_code: ClassVar[int] = 52


class WrittenBatch(NamedTuple):
    """One of the last batches of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return retreat_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class ProducerEntry:
    """One producer in one partition."""

    epoch: int = -1
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    current_txn_first_offset: int = -1
    batches: deque[WrittenBatch] = field(default_factory=lambda: deque(maxlen=KEPT_BATCHES))

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1


@dataclass(slots=True)
class Verification:
    """A producer's coordinator is asked whether this partition is part of its transaction (KIP-890).

    Who has this very object may begin the transaction. A marker takes it away, so that no batch comes behind the end of
    the transaction it belongs to.
    """

    epoch: int
    lowest_sequence: int
    """Nothing after it may be stored before it is: two requests may wait at once."""
    since_ms: int


class ProducerState:
    """The producers of one partition. Thread: one. ``offset``: everything before it is reflected here."""

    def __init__(self) -> None:
        self.producers: dict[int, ProducerEntry] = {}
        self.offset = 0
        self._open: dict[int, int] = {}
        """First offset of each open transaction to its producer."""
        self._verifications: dict[int, Verification] = {}

    # -- a client's batch ---------------------------------------------------------------------------------------

    def duplicate_of(self, header: BatchHeader) -> WrittenBatch | None:
        """The batch this one repeats, if it is one of the last five of its producer."""
        known = self.producers.get(header.producer_id)
        if known is None or known.epoch != header.producer_epoch:
            return None
        for batch in known.batches:
            if (batch.first_sequence, batch.last_sequence) == (header.base_sequence, header.last_sequence):
                return batch
        return None

    def is_open(self, producer_id: int) -> bool:
        """Whether a transaction of this producer has begun here and not ended."""
        known = self.producers.get(producer_id)
        return known is not None and known.current_txn_first_offset >= 0

    def begin_verification(self, producer_id: int, epoch: int, sequence: int, now_ms: int) -> Verification:
        """What the first batch of a transaction is to be appended with, once the coordinator has agreed."""
        found = self._verifications.setdefault(producer_id, Verification(epoch, sequence, now_ms))
        if epoch > found.epoch:
            found.epoch, found.lowest_sequence = epoch, sequence
        elif epoch == found.epoch:
            found.lowest_sequence = min(found.lowest_sequence, sequence)
        return found

    def check_verified(self, header: BatchHeader, verified: Verification | None) -> None:
        """Raise if this batch would begin a transaction its coordinator was not asked about."""
        if not header.transactional or self.is_open(header.producer_id):
            return
        if verified is None or self._verifications.get(header.producer_id) is not verified:
            raise InvalidTxnState(f"a batch of producer {header.producer_id} is not part of an ongoing transaction")

    def check(self, header: BatchHeader, *, sequences: bool = True) -> None:
        """Raise if this batch may not be written now. Duplicates are asked for before."""
        known = self.producers.get(header.producer_id, _UNKNOWN)
        if header.producer_epoch < known.epoch:
            raise InvalidProducerEpoch(
                f"producer {header.producer_id} writes with epoch {header.producer_epoch}; {known.epoch} is known here"
            )
        if sequences:
            self._check_sequence(header, known)
        if known.current_txn_first_offset >= 0 and not header.transactional:
            raise InvalidTxnState(f"producer {header.producer_id} has a transaction open and writes outside of it")

    def _check_sequence(self, header: BatchHeader, known: ProducerEntry) -> None:
        waiting = self._verifications.get(header.producer_id)
        if waiting is not None and header.base_sequence > waiting.lowest_sequence:
            raise OutOfOrderSequence(
                f"producer {header.producer_id} sends sequence {header.base_sequence}; {waiting.lowest_sequence} "
                "has not been stored yet"
            )
        if header.producer_epoch != known.epoch:
            expected = header.base_sequence if known.epoch == -1 else 0
        elif known.batches:
            expected = advance_sequence(known.last_sequence, 1)
        else:
            # Only a marker of this epoch is known: it ended what came before, so the epoch begins anew.
            expected = 0
        if header.base_sequence != expected:
            raise OutOfOrderSequence(
                f"producer {header.producer_id}, epoch {header.producer_epoch}, sends sequence "
                f"{header.base_sequence}; {expected} comes next"
            )

    def check_marker(self, header: BatchHeader, marker: Marker) -> None:
        """Raise if a marker comes from the past."""
        known = self.producers.get(header.producer_id, _UNKNOWN)
        if header.producer_epoch < known.epoch:
            raise InvalidProducerEpoch(
                f"a marker of epoch {header.producer_epoch} for producer {header.producer_id}; {known.epoch} is known"
            )
        if marker.coordinator_epoch < known.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"a marker of coordinator epoch {marker.coordinator_epoch}; {known.coordinator_epoch} is known here"
            )

    # -- what was written ---------------------------------------------------------------------------------------

    def wrote(self, header: BatchHeader) -> None:
        """A data batch of a producer is in the log."""
        self._verifications.pop(header.producer_id, None)
        known = self.producers.setdefault(header.producer_id, ProducerEntry())
        if header.producer_epoch != known.epoch:
            known.epoch = header.producer_epoch
            known.batches.clear()
        known.batches.append(
            WrittenBatch(header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp)
        )
        known.last_timestamp = header.max_timestamp
        if header.transactional and known.current_txn_first_offset < 0:
            known.current_txn_first_offset = header.base_offset
            self._open[header.base_offset] = header.producer_id

    def ended(self, header: BatchHeader, marker: Marker) -> Aborted | None:
        """A marker is in the log; the aborted transaction it ends, if it ends one."""
        self._verifications.pop(header.producer_id, None)
        known = self.producers.setdefault(header.producer_id, ProducerEntry())
        if header.producer_epoch != known.epoch:
            known.epoch = header.producer_epoch
            known.batches.clear()
        first = known.current_txn_first_offset
        known.current_txn_first_offset = -1
        known.coordinator_epoch = marker.coordinator_epoch
        known.last_timestamp = header.max_timestamp
        if first < 0:
            return None
        del self._open[first]
        if marker.committed:
            return None
        others = self.first_open_offset
        stable = header.base_offset + 1 if others is None else others
        return Aborted(header.producer_id, first, header.base_offset, stable)

    @property
    def first_open_offset(self) -> int | None:
        """Where the earliest transaction began that has not ended."""
        return min(self._open) if self._open else None

    def expire(self, before_ms: int) -> list[int]:
        """Forget producers not heard of since then, unless a transaction of theirs is open; their ids."""
        gone = [
            producer_id
            for producer_id, known in self.producers.items()
            if known.last_timestamp < before_ms and known.current_txn_first_offset < 0
        ]
        for producer_id in gone:
            del self.producers[producer_id]
        self._verifications = {
            producer_id: each for producer_id, each in self._verifications.items() if each.since_ms >= before_ms
        }
        return gone

    # -- snapshots ----------------------------------------------------------------------------------------------

    def snapshot(self) -> Iterator[tuple[int, ProducerEntry]]:
        """Every producer: what a snapshot file holds."""
        return iter(self.producers.items())

    def restore(self, entries: Iterable[tuple[int, ProducerEntry]], offset: int) -> None:
        """Take what a snapshot says of everything before ``offset``."""
        self.producers = dict(entries)
        self.offset = offset
        self._open = {
            entry.current_txn_first_offset: producer_id
            for producer_id, entry in self.producers.items()
            if entry.current_txn_first_offset >= 0
        }


_UNKNOWN = ProducerEntry()
