"""The coordinator at work: requests wait as Deferreds, its timers are the reactor's.

The coordinator itself is pure (spec §23: parked requests are state, not blocked handlers). Here a token stands for the
answer somebody waits for; when that somebody's connection ends, the token is dropped and the member stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, TypeVar, cast

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from consumers.group_protocol.coordinator.requests import Request, Token
from consumers.group_protocol.coordinator.results import Reply
from consumers.group_protocol.coordinator.service import GroupCoordinator
from consumers.group_protocol.coordinator.settings import LogPosition
from consumers.group_protocol.events import OffsetsNotFlushed
from consumers.group_protocol.offsets_log import OffsetsLog, partition_of
from kafka2011.broker.reactor import DelayedCall, Reactor
from kafka2011.events import Journal

Result = TypeVar("Result")


class Durable(Protocol):
    """Who hears what became of the records of the offsets log."""

    @property
    def trouble(self) -> str | None:
        """Why groups are not spoken for, and will not be before that is over; None if they are, or soon will be."""

    def flushed(self, position: LogPosition) -> None:
        """Everything up to ``position`` is durable."""

    def flush_failed(self, number: int) -> None:
        """What is not durable by now never will be."""


class GroupService:
    """Ask the coordinator and wait. Thread: reactor."""

    def __init__(
        self, coordinator: GroupCoordinator, log: OffsetsLog, reactor: Reactor, journal: Journal
    ) -> None:
        self.coordinator = coordinator
        self._log, self._reactor, self._journal = log, reactor, journal
        self._flushing: dict[int, Deferred[None]] = {}
        self._waiting: dict[Token, Deferred[Any]] = {}
        self._timer: DelayedCall | None = None
        self.loading: AbstractSet[int] = frozenset()
        """Partitions of the offsets log that are ours, but whose offsets are not here yet."""
        self.durable: Durable | None = None
        self._arm()

    def ask(self, request: Request, _kind: type[Result]) -> Deferred[Result]:
        """Fire with the answer, now or when the coordinator gives it."""
        token = object()
        answer: Deferred[Any] = Deferred(lambda _: self._drop(token))
        self._waiting[token] = answer
        self.deliver(self.coordinator.handle(token, request, self._reactor.seconds()))
        return cast("Deferred[Result]", answer)

    def is_available(self, group: str) -> bool:
        """Tell whether the group's offsets can be read and written here, and by nobody else."""
        return self.coordinator.is_available(group)

    def is_loading(self, group: str) -> bool:
        """Tell whether the group is ours and its offsets are being fetched from where they were, if they can be."""
        return partition_of(group) in self.loading and (self.durable is None or self.durable.trouble is None)

    def deliver(self, replies: Iterable[Reply]) -> None:
        """Hand out answers the coordinator set free."""
        for reply in replies:
            answer = self._waiting.pop(reply.token, None)
            if answer is not None:
                answer.callback(reply.response)
        self._flush()
        self._arm()

    def stop(self) -> None:
        """No more timers."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def settled(self) -> Deferred[list[None]]:
        """Fire when no flush is under way any more."""
        return gatherResults(list(self._flushing.values()))

    def _flush(self) -> None:
        """Force new records to disk in threads, one at a time for each partition of the offsets log."""
        for number in self._log.unflushed():
            if number not in self._flushing:
                running = deferToThread(self._log.flush, number)
                self._flushing[number] = running.addCallbacks(
                    self._flushed, self._not_flushed, callbackArgs=(number,), errbackArgs=(number,)
                )

    def _flushed(self, position: LogPosition, number: int) -> None:
        del self._flushing[number]
        if self.durable is not None:
            self.durable.flushed(position)
        self.deliver(self.coordinator.flushed(position, self._reactor.seconds()))

    def copied(self, position: LogPosition) -> None:
        """What was appended up to ``position`` is where the next coordinator looks."""
        self.deliver(self.coordinator.flushed(position, self._reactor.seconds()))

    def not_copied(self, position: LogPosition) -> None:
        """It takes too long to get there."""
        self.deliver(self.coordinator.not_copied(position, self._reactor.seconds()))

    def _not_flushed(self, failure: Failure, number: int) -> None:
        del self._flushing[number]
        if self.durable is not None:
            self.durable.flush_failed(number)
        self._journal.emit(OffsetsNotFlushed(partition=number, error=failure.getErrorMessage()))
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
