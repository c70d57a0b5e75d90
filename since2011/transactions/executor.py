"""The coordinator at work: its answers wait as Deferreds, its records go to the log, its decisions to the partitions.

What the machine says is done in the order it says it; where an action is over at once, what follows from it is done
before anything else can happen to the id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, gatherResults
from twisted.python.failure import Failure

from kafka2011.broker.reactor import DelayedCall
from kafka2011.errors import Kafka2011Error
from kafka2011.failpoints import fail_point
from kafka2011.types import TopicPartition
from since2011.server.markers import Ending
from since2011.transactions.coordinator import To, TransactionCoordinator
from since2011.transactions.events import (
    Answer,
    Event,
    Initialize,
    Mark,
    Marked,
    NeedProducerId,
    NotWritten,
    Write,
    Written,
)
from since2011.transactions.journal_events import ProducerFenced, TransactionalIdForgotten, TransactionNotWritten
from since2011.transactions.marker_sender import Decision, MarkerSender
from since2011.transactions.state_log import StateLog
from since2011.transactions.transaction import State, Transaction
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import refusal

if TYPE_CHECKING:
    from since2011.server.service import ModernBroker

AGAIN_S = 0.1
_UNAVAILABLE = frozenset({
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
})  # fmt: skip
_ELSEWHERE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR})


def told(error: ErrorCode) -> ErrorCode:
    """What a producer is told when its transaction's record could not be written."""
    if error in _UNAVAILABLE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NOT_COORDINATOR if error in _ELSEWHERE else ErrorCode.UNKNOWN_SERVER_ERROR


def _name(action: Write) -> str:
    return "dead" if action.value is None else action.value.state.name.lower()


class Executor:
    """Thread: reactor."""

    def __init__(self, modern: ModernBroker, coordinator: TransactionCoordinator, log: StateLog) -> None:
        self._modern, self._coordinator, self._log = modern, coordinator, log
        self._sender = MarkerSender(modern, self._told)
        self._waiting: dict[object, Deferred[Answer]] = {}
        self._writing: set[Deferred[None]] = set()
        self._timers: set[DelayedCall] = set()
        self._stopped = False

    @property
    def n_untold(self) -> int:
        """Partitions that wait for a marker."""
        return self._sender.n_untold

    def _now_ms(self) -> int:
        return self._modern.clock.wall_ms()

    async def stop(self) -> None:
        """Let what is being written be written, and do nothing more."""
        self._stopped = True
        self._sender.stop()
        for timer in self._timers:
            if timer.active():
                timer.cancel()
        await gatherResults(list(self._writing))

    # What happens

    def ask(self, transactional_id: str, make: Callable[[object], Event]) -> Deferred[Answer]:
        """Fire with the coordinator's answer."""
        token = object()
        answer: Deferred[Answer] = Deferred(lambda _: self._drop(token))
        self._waiting[token] = answer
        self._deliver(transactional_id, make(token))
        return answer

    def _drop(self, token: object) -> None:
        self._waiting.pop(token, None)

    def elected(self, number: int, epoch: int, found: list[Transaction]) -> None:
        """Speak for a partition of the state topic."""
        self._do(self._coordinator.elected(number, epoch, found, self._now_ms()))

    def resigned(self, number: int) -> None:
        """Speak for it no more."""
        self._sender.forget(number)
        self._do(self._coordinator.resigned(number, self._now_ms()))

    def look_for_timeouts(self) -> None:
        """Abort what has been open for too long."""
        self._do(self._coordinator.look_for_timeouts(self._now_ms()))

    def look_for_unused(self) -> None:
        """Forget ids nobody has used for long."""
        self._do(self._coordinator.look_for_unused(self._now_ms()))

    def _deliver(self, transactional_id: str, event: Event, epoch: int | None = None) -> None:
        if not self._stopped:
            self._do(self._coordinator.deliver(transactional_id, event, self._now_ms(), epoch))

    # What is to be done

    def _do(self, steps: list[To]) -> None:
        for to in steps:
            match to.action:
                case Answer():
                    self._answer(to.action)
                case Write():
                    self._write(to, to.action)
                case Mark():
                    self._mark(to, to.action)
                case NeedProducerId():
                    self._take_producer_id(to, to.action.event)

    def _answer(self, action: Answer) -> None:
        waiting = self._waiting.pop(action.token, None)
        if waiting is not None:
            waiting.callback(action)

    def _write(self, to: To, action: Write) -> None:
        if action.again:
            self._later(lambda: self._write_now(to, action))
        else:
            self._write_now(to, action)

    def _write_now(self, to: To, action: Write) -> None:
        fail_point(f"transactions.{_name(action)}.before")
        try:
            writing = self._log.append(to.number, to.id, action.value)
        except Kafka2011Error as error:
            self._not_written(to, error)
            return
        if writing is None:
            self._written(to, action)
            return
        # What is told when all markers are there decides nothing: a crash before it is on disk sends them again.
        if action.value is not None and action.value.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
            self._written(to, action)
            writing.addErrback(lambda _: None)
        else:
            writing.addCallbacks(lambda _: self._written(to, action), lambda failure: self._failed(to, failure))
        self._writing.add(writing)
        writing.addBoth(lambda _: self._writing.discard(writing))

    def _written(self, to: To, action: Write) -> None:
        fail_point(f"transactions.{_name(action)}.after")
        if action.value is None:
            self._modern.journal.emit(TransactionalIdForgotten(transactional_id=to.id))
        known = self._coordinator.get(to.id)
        if known is not None and known.pending is not None and known.pending.fences:
            current = known.current
            reason = "its time is over" if known.pending.token is None else "a newer instance took its place"
            self._modern.journal.emit(
                ProducerFenced(
                    transactional_id=to.id, producer_id=current.producer_id, epoch=current.epoch, reason=reason
                )
            )
        self._deliver(to.id, Written(), to.epoch)

    def _failed(self, to: To, failure: Failure) -> None:
        error = failure.value
        if not isinstance(error, Kafka2011Error):
            failure.raiseException()
        self._not_written(to, error)

    def _not_written(self, to: To, error: Kafka2011Error) -> None:
        self._modern.journal.emit(TransactionNotWritten(transactional_id=to.id, error=str(error)))
        code, _ = refusal(error)
        self._deliver(to.id, NotWritten(told(code)), to.epoch)

    def _mark(self, to: To, action: Mark) -> None:
        ending = Ending(action.producer_id, action.epoch, action.commit, to.epoch)
        self._sender.send(Decision(to.id, to.number, ending), action.partitions)

    def _told(self, decision: Decision, partition: TopicPartition) -> None:
        ending = decision.ending
        marked = Marked(ending.producer_id, ending.epoch, partition)
        self._deliver(decision.id, marked, ending.coordinator_epoch)

    def _take_producer_id(self, to: To, event: Initialize) -> None:
        taking = Deferred.fromCoroutine(self._modern.producer_ids.next())

        def taken(producer_id: int) -> None:
            self._deliver(to.id, Initialize(event.token, event.timeout_ms, event.expected, producer_id))

        def failed(_: Failure) -> None:
            self._answer(Answer(event.token, ErrorCode.COORDINATOR_NOT_AVAILABLE))

        taking.addCallbacks(taken, failed)

    def _later(self, work: Callable[[], None]) -> None:
        if self._stopped:
            return

        def run() -> None:
            self._timers.discard(timer)
            work()

        timer = self._modern.reactor.callLater(AGAIN_S, run)
        self._timers.add(timer)
