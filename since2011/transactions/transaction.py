"""What is known of a transactional id: who may write with it, and how far its transaction has come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from kafka2011.types import TopicPartition
from since2011.wire.codec import Struct
from since2011.wire.transaction_records import decode_transaction, encode_transaction

NO_EPOCH = -1
LAST_EPOCH = 32_767
EXHAUSTED_EPOCH = LAST_EPOCH - 1
"""The last epoch a client gets: one more is left to fence it with."""


class State(IntEnum):
    """The numbers are those of the records; Dead is never written."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6

    @property
    def words(self) -> str:
        """As tools show it: PrepareCommit."""
        return self.name.title().replace("_", "")


PREPARED = (State.PREPARE_COMMIT, State.PREPARE_ABORT)
RESTING = (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
"""No transaction is under way: the next may begin, the id may be given to another producer, or be forgotten."""
FROM: dict[State, tuple[State, ...]] = {
    State.EMPTY: RESTING,
    State.ONGOING: (State.ONGOING, *RESTING),
    State.PREPARE_COMMIT: (State.ONGOING,),
    State.PREPARE_ABORT: (State.ONGOING,),
    State.COMPLETE_COMMIT: (State.PREPARE_COMMIT,),
    State.COMPLETE_ABORT: (State.PREPARE_ABORT,),
    State.DEAD: RESTING,
}
"""Which states a state may come from; everything else is illegal."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transactional id at one moment.

    Invariant: only Ongoing and Prepare* have partitions. ``epoch`` -1: made in memory, nothing written yet.
    """

    id: str
    producer_id: int
    epoch: int = NO_EPOCH
    last_producer_id: int = -1
    last_epoch: int = NO_EPOCH
    """What the producer had before its last InitProducerId: a retry of it is known by them. Not in the log."""
    timeout_ms: int = 0
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = -1
    update_ms: int = -1

    @property
    def is_exhausted(self) -> bool:
        """No further epoch of this producer id may be given to a client."""
        return self.epoch >= EXHAUSTED_EPOCH

    def encode(self) -> bytes:
        """The value of its record."""
        topics = None if self.state is State.EMPTY else by_topic(self.partitions)
        rows = None if topics is None else [Struct(topic=topic, ids=ids) for topic, ids in topics.items()]
        return encode_transaction(
            Struct(
                producer_id=self.producer_id,
                epoch=self.epoch,
                timeout_ms=self.timeout_ms,
                state=int(self.state),
                partitions=rows,
                update_ms=self.update_ms,
                start_ms=self.start_ms,
            )
        )

    @classmethod
    def decode(cls, transactional_id: str, value: bytes) -> Transaction:
        """What a record says. Raises InvalidRequest, ValueError for a state that is none."""
        found = decode_transaction(value)
        return cls(
            transactional_id,
            found.producer_id,
            found.epoch,
            timeout_ms=found.timeout_ms,
            state=State(found.state),
            partitions=frozenset(
                TopicPartition(row.topic, index) for row in found.partitions or () for index in row.ids
            ),
            start_ms=found.start_ms,
            update_ms=found.update_ms,
        )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topic to partitions, both in order."""
    rows: dict[str, list[int]] = {}
    for each in sorted(partitions):
        rows.setdefault(each.topic, []).append(each.partition)
    return rows
