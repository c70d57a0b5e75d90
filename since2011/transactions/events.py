"""What may happen to a transactional id, and what has to be done then: the words of the transaction machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka2011.types import TopicPartition
from since2011.transactions.transaction import Transaction
from since2011.wire.error_codes import ErrorCode

Token = Any
"""Stands for the answer somebody waits for; None: nobody."""


# -- events -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Initialize:
    """InitProducerId. ``expected``: the producer id and epoch the client has had (KIP-360)."""

    token: Token
    timeout_ms: int
    expected: tuple[int, int] | None = None
    fresh_producer_id: int | None = None
    """A producer id nobody has, once one was asked for."""


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """AddPartitionsToTxn, or AddOffsetsToTxn: the group's partition of the offsets topic."""

    token: Token
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class End:
    """EndTxn."""

    token: Token
    producer_id: int
    epoch: int
    commit: bool


@dataclass(frozen=True, slots=True)
class TimedOut:
    """Time to look whether the transaction has been open for too long."""


@dataclass(frozen=True, slots=True)
class Unused:
    """The id has not been used for ``transactional.id.expiration.ms``."""


@dataclass(frozen=True, slots=True)
class Written:
    """The record of the pending change is in the log."""


@dataclass(frozen=True, slots=True)
class NotWritten:
    """It is not, and the client is told ``error``."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Marked:
    """A partition has its marker, or is no more."""

    producer_id: int
    epoch: int
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Recovered:
    """The id was read from the log by a new coordinator."""


@dataclass(frozen=True, slots=True)
class WrittenOff:
    """This broker coordinates the id no more."""

    error: ErrorCode


Event = (
    Initialize
    | AddPartitions
    | End
    | TimedOut
    | Unused
    | Written
    | NotWritten
    | Marked
    | Recovered
    | WrittenOff
)  # fmt: skip


# -- actions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """Tell who waits; producer id and epoch are InitProducerId's."""

    token: Token
    error: ErrorCode
    producer_id: int = -1
    epoch: int = -1


@dataclass(frozen=True, slots=True)
class Write:
    """Write this to the log, None: a tombstone; ``Written`` or ``NotWritten`` is to follow.

    ``again``: it could not be written a moment ago.
    """

    value: Transaction | None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """Write markers to these partitions; ``Marked`` is to follow for each."""

    producer_id: int
    epoch: int
    commit: bool
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class NeedProducerId:
    """Deliver ``event`` again with a fresh producer id."""

    event: Initialize


Action = Answer | Write | Mark | NeedProducerId
