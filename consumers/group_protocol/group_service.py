"""The coordinator at work: requests wait as Deferreds, its timers are the reactor's.

The coordinator itself is pure (docs/group-protocol.md: parked requests are state, not blocked handlers). Here a token
stands for the answer somebody waits for; when that somebody's connection ends, the token is dropped and the member
stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred

from consumers.group_protocol.coordinator.requests import Request, Token
from consumers.group_protocol.coordinator.results import Reply
from consumers.group_protocol.coordinator.service import NOTHING_OPEN, GroupCoordinator
from consumers.group_protocol.coordinator.settings import LogPosition, Record
from consumers.group_protocol.events import OffsetsNotFlushed
from kafka2011.broker.reactor import DelayedCall, Reactor
from kafka2011.events import Journal

Result = TypeVar("Result")


class GroupService:
    """Ask the coordinator and wait. Thread: reactor."""

    def __init__(self, coordinator: GroupCoordinator, reactor: Reactor, journal: Journal) -> None:
        self.coordinator = coordinator
        self._reactor, self._journal = reactor, journal
        self._waiting: dict[Token, Deferred[Any]] = {}
        self._timer: DelayedCall | None = None
        self._arm()

    def ask(self, request: Request, _kind: type[Result]) -> Deferred[Result]:
        """Fire with the answer, now or when the coordinator gives it."""
        token = object()
        answer: Deferred[Any] = Deferred(lambda _: self._drop(token))
        self._waiting[token] = answer
        self.deliver(self.coordinator.handle(token, request, self._reactor.seconds()))
        return cast("Deferred[Result]", answer)

    def is_available(self, group: str) -> bool:
        """Tell whether the group's offsets can be read and written here."""
        return self.coordinator.is_available(group)

    def deliver(self, replies: Iterable[Reply]) -> None:
        """Hand out answers the coordinator set free."""
        for reply in replies:
            answer = self._waiting.pop(reply.token, None)
            if answer is not None:
                answer.callback(reply.response)
        self._arm()

    def load(self, records: Iterable[Record], open_commits: Mapping[int, list[Record]] = NOTHING_OPEN) -> None:
        """Take over the groups of a partition of the offsets topic."""
        self.coordinator.load(records, self._reactor.seconds(), open_commits)
        self._arm()

    def transaction_ended(self, number: int, producer_id: int, committed: bool) -> None:
        """A transaction's marker is in a partition of the offsets topic."""
        self.coordinator.transaction_ended(number, producer_id, committed=committed)

    def resign(self, is_ours: Callable[[str], bool]) -> None:
        """Forget the groups another broker coordinates now."""
        self.deliver(self.coordinator.resign(is_ours, self._reactor.seconds()))

    def stop(self) -> None:
        """No more timers."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def durable(self, position: LogPosition) -> None:
        """Everything up to ``position`` is on disk."""
        self.deliver(self.coordinator.flushed(position, self._reactor.seconds()))

    def not_durable(self, number: int, reason: str) -> None:
        """What waits on a partition of the offsets topic will not get there."""
        self._journal.emit(OffsetsNotFlushed(partition=number, error=reason))
        self.deliver(self.coordinator.flush_failed(number, self._reactor.seconds()))

    def _drop(self, token: Token) -> None:
        self._waiting.pop(token, None)
        self.deliver(self.coordinator.drop(token, self._reactor.seconds()))

    def _arm(self) -> None:
        due = self.coordinator.next_deadline()
        self.stop()
        if due is not None:
            self._timer = self._reactor.callLater(max(0.0, due - self._reactor.seconds()), self._tick)

    def _tick(self) -> None:
        self.deliver(self.coordinator.tick(self._reactor.seconds()))
