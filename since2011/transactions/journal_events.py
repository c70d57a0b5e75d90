"""What happens to transactions, told once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsRead(Event):
    """A partition of ``__transaction_state`` was read: its transactional ids are spoken for here."""

    partition: int
    n_ids: int
    n_unfinished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsNotRead(Event):
    """A partition of ``__transaction_state`` cannot be read; its producers are told to wait."""

    level: ClassVar[int] = logging.ERROR
    partition: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRecordUnreadable(Event):
    """A record of ``__transaction_state`` says nothing that is known here; it is passed over."""

    level: ClassVar[int] = logging.WARNING
    key: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionNotWritten(Event):
    """A change of a transactional id could not be written; its producer is told, and tries again."""

    level: ClassVar[int] = logging.WARNING
    transactional_id: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerFenced(Event):
    """A transaction that was left open is aborted, and its producer may not write any more."""

    transactional_id: str
    producer_id: int
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalIdForgotten(Event):
    """A transactional id was not used for long."""

    transactional_id: str
