"""The transactional ids of the partitions of ``__transaction_state`` that are led here.

Every call returns what is to be done, in order. Pure: the log, the markers and the clock belong to whoever calls. A
partition is served in one leadership (``epoch``); what was begun in an earlier one is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka2011.types import TopicPartition
from since2011.topics.internal import partition_of
from since2011.transactions.events import Action, Answer, Event, Recovered, TimedOut, Token, Unused, WrittenOff
from since2011.transactions.machine import Known, is_over, step, verdict
from since2011.transactions.transaction import RESTING, Transaction
from since2011.wire.error_codes import ErrorCode

DEFAULT_EXPIRATION_MS = 7 * 24 * 3_600_000


class To(NamedTuple):
    """Something to do for a transactional id, in the leadership it belongs to."""

    id: str
    number: int
    epoch: int
    action: Action


@dataclass(slots=True)
class Served:
    """One partition of the topic in one leadership."""

    epoch: int
    known: dict[str, Known] = field(default_factory=dict)


class TransactionCoordinator:
    """Thread: one."""

    def __init__(self, expiration_ms: int = DEFAULT_EXPIRATION_MS) -> None:
        self._expiration_ms = expiration_ms
        self.served: dict[int, Served] = {}
        """By partition of the topic."""

    # Leadership

    def elected(self, number: int, epoch: int, transactions: Iterable[Transaction], now_ms: int) -> list[To]:
        """Speak for a partition with what its log says; decisions that were taken are carried out."""
        served = self.served[number] = Served(epoch, {each.id: Known(each) for each in transactions})
        return [to for each in list(served.known) for to in self._take(number, each, Recovered(), now_ms)]

    def resigned(self, number: int, now_ms: int) -> list[To]:
        """Another broker speaks for it; who waits is told to ask there."""
        served = self.served.get(number)
        if served is None:
            return []
        gone = WrittenOff(ErrorCode.NOT_COORDINATOR)
        told = [to for each in list(served.known) for to in self._take(number, each, gone, now_ms)]
        del self.served[number]
        return told

    # Events

    def deliver(self, transactional_id: str, event: Event, now_ms: int, epoch: int | None = None) -> list[To]:
        """Take an event; ``epoch``: only in the leadership it belongs to."""
        number = partition_of(transactional_id)
        served = self.served.get(number)
        if served is None or (epoch is not None and served.epoch != epoch):
            token: Token = getattr(event, "token", None)
            refused = Answer(token, ErrorCode.NOT_COORDINATOR)
            return [] if token is None else [To(transactional_id, number, -1, refused)]
        return self._take(number, transactional_id, event, now_ms)

    def _take(self, number: int, transactional_id: str, event: Event, now_ms: int) -> list[To]:
        served = self.served[number]
        known, actions = step(transactional_id, served.known.get(transactional_id), event, now_ms)
        if known is None:
            served.known.pop(transactional_id, None)
        else:
            served.known[transactional_id] = known
        return [To(transactional_id, number, served.epoch, action) for action in actions]

    def look_for_timeouts(self, now_ms: int) -> list[To]:
        """Abort what has been open for too long."""
        due = [(number, each.current.id) for number, each in self._all() if is_over(each.current, now_ms)]
        return [to for number, name in due for to in self._take(number, name, TimedOut(), now_ms)]

    def look_for_unused(self, now_ms: int) -> list[To]:
        """Forget ids nobody has used for long."""
        limit = now_ms - self._expiration_ms
        due = [
            (number, each.current.id)
            for number, each in self._all()
            if each.current.state in RESTING and each.current.update_ms <= limit
        ]
        return [to for number, name in due for to in self._take(number, name, Unused(), now_ms)]

    # Looking

    def _all(self) -> Iterator[tuple[int, Known]]:
        return ((number, each) for number, served in self.served.items() for each in list(served.known.values()))

    def transactions(self) -> list[Known]:
        """Everything that is known."""
        return [each for _, each in self._all()]

    def get(self, transactional_id: str) -> Known | None:
        """What is known of one id here."""
        served = self.served.get(partition_of(transactional_id))
        return None if served is None else served.known.get(transactional_id)

    def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether these are part of the producer's transaction now (KIP-890)."""
        known = self.get(transactional_id)
        return {each: verdict(known, producer_id, epoch, each) for each in partitions}
