"""One broker's part in the office of controller: it runs for it, holds it, and loses it.

Everything that happens becomes an event in one queue, and one thread takes them in turn: nodes that changed, answers of
brokers, requests of clients, time. Only that thread touches the context. Between events nothing is under way but
requests to brokers, whose answers are events again.

    no office    /controller is watched; when it is gone, and this broker is registered, it runs
    office       events are served; each begins only while the lease of the session holds (``zk_registry.lease``)
    an error     of ZooKeeper: everything is read again, in the same office if it still is; of our own: the office is
                 given up, so that somebody else may do better
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.events import Journal
from since2011.controller import leadership, office
from since2011.controller.context import Context, Counts, Rules
from since2011.controller.events import ControllerElected, ControllerFailed, ControllerResigned
from since2011.controller.outbox import Message
from since2011.controller.steps import Deposed, Send, Steps
from since2011.topics.image import BrokerImage
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused
from zk_registry.lease import Lease, LeasedSession
from zk_registry.modern import paths
from zk_registry.operations import DeleteIfMine, Exists, RegistryError
from zk_registry.states import Session, SessionState

T = TypeVar("T")
RETRY_S = 0.1
"""Pause before running, or reading everything, is tried again."""


@dataclass(frozen=True, slots=True)
class Balance:
    """How often leadership is brought back to the preferred replicas; ``every_s`` 0: never."""

    every_s: float = 300.0
    percent: int = 10


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request of a client."""

    steps: Callable[[Context], Steps[Any]]
    done: Callable[[Any], None]
    """Called with the result, or with the exception that came instead."""


@dataclass(frozen=True, slots=True)
class _Answered:
    message: Message
    body: Struct


_Event = str | _Asked | _Answered | Callable[[Context], Steps[None]] | None
"""A path that changed, a request, an answer, something to do in office; None wakes the thread."""


class Candidate:
    """A thread of its own; other threads leave events."""

    def __init__(
        self,
        session: Session,
        broker_id: int,
        rules: Rules,
        send: Callable[[tuple[Message, ...], dict[int, BrokerImage]], None],
        *,
        balance: Balance = Balance(),
        journal: Journal | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """``send(messages, living brokers)`` puts requests on their way; with no broker, nothing more is sent."""
        self._session, self._broker_id, self._rules, self._send = session, broker_id, rules, send
        self._balance, self._journal, self._clock = balance, journal or Journal(), clock
        lease = Lease(session.timeout_s, clock=clock)
        self._lease, self._leased = lease, LeasedSession(session, lease, clock=clock)
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="controller", daemon=True)
        self._balance_at = clock.monotonic() + balance.every_s
        self._stop_listening: Callable[[], None] = lambda: None
        self.counts = Counts()
        self.context: Context | None = None
        """While in office. Read by other threads for a look, changed by its own only."""

    # -- any thread

    def start(self) -> None:
        """Run for the office from now on; the broker is registered."""
        self._stop_listening = self._session.on_state(self._state_changed)
        self._events.put(paths.CONTROLLER)
        self._thread.start()

    def stop(self) -> None:
        """Give the office up, for whoever runs next; waits for the event under way."""
        self._stop_listening()
        self._stopping.set()
        self._events.put(None)
        if self._thread.is_alive():
            self._thread.join(5.0)

    @property
    def in_office(self) -> bool:
        return self.context is not None

    def note(self, path: str) -> None:
        """A node has changed, or may have."""
        self._events.put(path)

    def answered(self, message: Message, body: Struct) -> None:
        """A broker has answered."""
        self._events.put(_Answered(message, body))

    def settings_changed(self) -> None:
        """Topics' settings are not what they were."""
        self._events.put(office.settings_changed)

    def ask(self, steps: Callable[[Context], Steps[T]], done: Callable[[T | Exception], None]) -> None:
        """Do this in office; Refused with NOT_CONTROLLER where another broker is."""
        self._events.put(_Asked(steps, done))

    def _state_changed(self, state: SessionState) -> None:
        # Watches are lost with the connection, and the office with the session: look at everything again.
        self._events.put(paths.CONTROLLER)

    # -- the thread

    def _work(self) -> None:
        while not self._stopping.is_set():
            noted, others = self._next()
            try:
                if self.context is None or paths.CONTROLLER in noted:
                    self._look()
                if self.context is not None:
                    self._serve(self.context, noted - {paths.CONTROLLER})
                while others:
                    self._do(others.popleft())
                self._maybe_balance()
            except (RegistryError, Deposed) as error:
                self._leave(str(error))
                self._refuse(others)
                self._again()
            except Exception as error:  # ours: another broker may do better, and this one goes on serving
                self._journal.emit(ControllerFailed(reason=repr(error)))
                self._give_up(repr(error))
                self._refuse(others)
                self._again()
        if not self._events.empty():
            self._refuse(self._next()[1])
        if self.context is not None:
            self._give_up("this broker stops")

    def _next(self) -> tuple[set[str], deque[_Event]]:
        """Wait for an event; the paths that changed by now, and the first events that are none."""
        noted: set[str] = set()
        others: deque[_Event] = deque()
        try:
            event = self._events.get(timeout=self._wait_s())
            while True:
                if isinstance(event, str):
                    noted.add(event)
                elif event is not None:
                    others.append(event)
                event = self._events.get_nowait()
        except Empty:
            return noted, others

    def _wait_s(self) -> float | None:
        if self.context is None or not self._balance.every_s:
            return None
        return max(0.0, self._balance_at - self._clock.monotonic())

    def _look(self) -> None:
        """Who is in office? If nobody, run."""
        term = self._session.incarnation
        own = self._session.perform(Exists(paths.broker(self._broker_id)))
        if own is None or own.ephemeral_owner != self._session.session_id:
            self._leave("this broker is not registered")
            self._again()
            return
        before = self.context
        now = self._run(
            office.run_for_office(self._broker_id, self._session.session_id, self._clock.wall_ms(), self._rules)
        )
        if now is None or term != self._session.incarnation:
            self._leave("another broker is in office")
            return
        if before is None or before.epoch != now.epoch:
            if before is not None:
                self._leave("the office was given to another broker in between")
            self._journal.emit(ControllerElected(broker=self._broker_id, epoch=now.epoch))
            now.counts = self.counts
            self._run(office.take_office(now), now)
            self.context = now
            self._balance_at = self._clock.monotonic() + self._balance.every_s

    def _serve(self, context: Context, noted: set[str]) -> None:
        if noted:
            self._hold()
            began, elections = self._clock.monotonic(), self.counts.elections
            self._run(office.changed(context, noted), context)
            if self.counts.elections != elections:
                self.counts.seconds += self._clock.monotonic() - began

    def _do(self, event: _Event) -> None:
        if isinstance(event, _Asked):
            self._answer(event)
        elif self.context is not None:
            self._hold()
            if isinstance(event, _Answered):
                self._run(office.answered(self.context, event.message, event.body), self.context)
            elif event is not None and not isinstance(event, str):
                self._run(event(self.context), self.context)

    def _answer(self, asked: _Asked) -> None:
        try:
            if self.context is None:
                raise Refused(ErrorCode.NOT_CONTROLLER, "another broker is the controller; ask who, and ask that one")
            self._hold()
            result = self._run(asked.steps(self.context), self.context)
        except Exception as error:
            asked.done(error)
            if not isinstance(error, Refused):
                raise
        else:
            asked.done(result)

    def _maybe_balance(self) -> None:
        if self.context is not None and self._balance.every_s and self._clock.monotonic() >= self._balance_at:
            self._balance_at = self._clock.monotonic() + self._balance.every_s
            self._hold()
            self._run(leadership.balance(self.context, self._balance.percent), self.context)

    def _hold(self) -> None:
        """Make sure that nobody else can be in office; a RegistryError if that cannot be known now."""
        if not self._lease.holds(self._session.incarnation):
            self._leased.renew()

    def _run(self, steps: Steps[T], context: Context | None = None) -> T:
        """Do the steps one after the other."""
        answer: Any = None
        refused: RegistryError | None = None
        while True:
            try:
                step = steps.throw(refused) if refused is not None else steps.send(answer)
            except StopIteration as done:
                result: T = done.value
                return result
            answer, refused = None, None
            if isinstance(step, Send):
                assert context is not None
                self._send(step.messages, dict(context.brokers))
                continue
            try:
                answer = self._leased.perform(step, self.note)
            except RegistryError as error:
                refused = error

    def _leave(self, reason: str) -> None:
        """Out of office, if it was in it: nothing more is sent."""
        context, self.context = self.context, None
        if context is not None:
            self._send((), {})
            self._journal.emit(ControllerResigned(broker=self._broker_id, epoch=context.epoch, reason=reason))

    def _give_up(self, reason: str) -> None:
        """Leave, and let others run."""
        self._leave(reason)
        try:
            self._session.perform(DeleteIfMine(paths.CONTROLLER))
        except RegistryError:
            pass  # it goes with the session

    def _again(self) -> None:
        """Look again in a moment."""
        self._stopping.wait(RETRY_S)
        self._events.put(paths.CONTROLLER)

    def _refuse(self, others: Iterable[_Event]) -> None:
        """Nothing came of these requests; whoever asked may ask again."""
        for event in others:
            if isinstance(event, _Asked):
                event.done(Refused(ErrorCode.NOT_CONTROLLER, "this broker is not the controller any more; ask again"))
