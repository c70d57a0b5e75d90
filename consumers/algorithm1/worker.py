"""The thread that lives a member's life on a real session: performs each step, sends the answer back in.

Watches and session changes come from other threads; all they do is set a flag and wake this one.

What a silent ZooKeeper means for delivery: what we own is surely ours until our session can have expired. A silence
is noticed when two thirds of the session may be gone (``zk_registry.states``), so delivery goes on for a sixth of it
and a sixth is left over. After that it is held back, unless the ensemble itself says that it has no majority: then no
session can expire, and messages keep flowing while commits and rebalances wait.

The other way round, if it is this process that was away: nothing is delivered until ZooKeeper has answered.

Paper: §3.2.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any

from consumers.algorithm1.member import Member
from consumers.algorithm1.pause_detector import PauseDetector
from consumers.algorithm1.steps import NewSession, Progress, Start, Step, Stop, Wait
from consumers.delivery import Delivery
from consumers.events import DeliveryHeld, DeliveryResumed
from consumers.stream import Stream
from kafka2011.errors import Kafka2011Error
from zk_registry.operations import Exists, RegistryError, SessionExpired
from zk_registry.states import Session, SessionState

_ASK_AGAIN_S = 0.25
"""While ZooKeeper is silent: how long its own word that it has no majority is good for."""
_SETTLE_S = 0.05
"""A change seldom comes alone: a moment's wait lets one rebalance answer several."""


class Worker:
    """Runs ``member.life()``. Thread: its own."""

    def __init__(
        self,
        member: Member,
        session: Session,
        delivery: Delivery,
        streams: Collection[Stream],
        *,
        is_down: Callable[[], bool] = lambda: False,
    ) -> None:
        self._member, self._session, self._delivery, self._streams = member, session, delivery, streams
        self._is_down = is_down
        self._woken = threading.Event()
        self._incarnation = session.incarnation
        self._silence: threading.Timer | None = None
        self._held = False
        self._lock = threading.RLock()
        """Held while delivery is held back or released: the session's thread and the timer's must not cross."""
        self.failure: BaseException | None = None
        self.started = threading.Event()
        """Set after the first rebalance, or when there will be none."""
        self._forget = session.on_state(self._session_changed)
        timeout_s = session.timeout_s
        self._pause_detector = PauseDetector(member.clock, timeout_s / 12, timeout_s / 3, self.overslept)
        self._thread = threading.Thread(target=self._run, name=f"rebalance-{member.consumer_id}", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._pause_detector.start()

    def wake(self) -> None:
        """Something changed. Thread: any."""
        self._woken.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; False if it has not come in time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # -- the life ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._live()
        except Exception as error:
            # Whatever it is, the application must hear of it instead of waiting for messages for ever.
            self.failure = error
        finally:
            self._forget()
            self._pause_detector.stop()
            self._cancel_timer()
            self._delivery.stop()
            for wanted in self._member.wanted_commits:
                wanted.set_exception(self.failure or Kafka2011Error("the consumer is closed"))
            for stream in self._streams:
                stream.close(self.failure)
            self.started.set()

    def _live(self) -> None:
        life = self._member.life()
        answer: Any = None
        error: RegistryError | None = None
        while True:
            try:
                step = life.send(answer) if error is None else life.throw(error)
            except StopIteration:
                return
            answer = error = None
            try:
                answer = self._perform(step)
            except RegistryError as refused:
                error = refused

    def _perform(self, step: Step) -> Any:
        match step:
            case Stop(partitions):
                return self._delivery.stop(partitions)
            case Start(claims):
                self._delivery.start(claims)
                self.started.set()
                return None
            case Progress():
                return self._delivery.positions()
            case Wait(seconds):
                return self._wait(seconds)
            case NewSession():
                return self._wait_for_session()
        if self._session.state is SessionState.LOST or self._session.incarnation != self._incarnation:
            raise SessionExpired(getattr(step, "path", "/"), "the session is over")
        return self._session.perform(step, self._watched)

    def _wait(self, seconds: float) -> None:
        if self._woken.wait(seconds) and self._member.dirty and not self._member.closing:
            self._member.clock.sleep(_SETTLE_S)
        self._woken.clear()

    def _wait_for_session(self) -> None:
        while self._session.state is not SessionState.CONNECTED and not self._member.closing:
            if self._session.failure is not None:
                # No session will come as things are: the application must hear of it instead of waiting for ever.
                raise self._session.failure
            self._woken.wait(0.2)
            self._woken.clear()
        self._incarnation = self._session.incarnation
        self._release()

    def _watched(self, path: str) -> None:
        if self._member.noticed(path):
            self.wake()

    # -- a registry that falls silent -------------------------------------------------------------------------------

    def _session_changed(self, state: SessionState) -> None:
        """Thread: the session's."""
        with self._lock:
            self._cancel_timer()
            if state is SessionState.SUSPENDED:
                self._set_timer(self._session.timeout_s / 6)
            elif state is SessionState.LOST:
                self._hold()
            elif self._session.incarnation == self._incarnation:
                self._release()
        self._watched("/")

    def _silent_for_long(self) -> None:
        """Thread: the timer's."""
        if self._session.state is not SessionState.SUSPENDED:
            return
        down = self._is_down()
        with self._lock:
            # Asking took a while. If the session changed meanwhile, whoever tells us waits for this lock.
            if self._session.state is SessionState.SUSPENDED:
                if down:
                    self._release()
                else:
                    self._hold()
                self._set_timer(_ASK_AGAIN_S)

    def overslept(self) -> None:
        """This process was stopped for so long that its session may be over: deliver nothing until that is known.

        Thread: the pulse's.
        """
        self._hold()
        while self._session.state is SessionState.CONNECTED and not self._member.closing:
            try:
                self._session.perform(Exists("/"))
            except SessionExpired:
                return
            except RegistryError:
                continue
            with self._lock:
                if self._session.incarnation == self._incarnation:
                    self._release()
            return
        # Not connected: whoever tells us that we are again says what became of the session.

    def _set_timer(self, seconds: float) -> None:
        with self._lock:
            self._silence = threading.Timer(seconds, self._silent_for_long)
            self._silence.daemon = True
            self._silence.start()

    def _cancel_timer(self) -> None:
        with self._lock:
            if self._silence is not None:
                self._silence.cancel()
                self._silence = None

    def _hold(self) -> None:
        with self._lock:
            if self._held:
                return
            self._held = True
            for stream in self._streams:
                stream.hold()
            self._member.emit(DeliveryHeld(group=self._member.group, consumer=self._member.consumer_id))

    def _release(self) -> None:
        with self._lock:
            if not self._held:
                return
            self._held = False
            for stream in self._streams:
                stream.release()
            self._member.emit(DeliveryResumed(group=self._member.group, consumer=self._member.consumer_id))
