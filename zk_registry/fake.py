"""A ZooKeeper in memory for tests and simulation, with the faults the real one has, on command.

    world = FakeZooKeeper(seed=7, lost_reply_rate=0.02)
    a, b = world.session(), world.session()
    a.perform(Create("/x", ephemeral=True))
    a.expire()                       # the server ends a's session; a notices at its next operation
    world.deliver()                  # watches that fired so far arrive now, and not before

It answers as the real server does: the same random sequences of operations are run against both, and answers, refusals
and fired watches compared. Deterministic for a seed. Nothing happens by itself: watches arrive when delivered, sessions
expire when ``tick()`` finds them silent for longer than their timeout on the given clock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from kafka2011.clock import Clock, ManualClock
from kafka2011.errors import Kafka2011Error
from zk_registry import operations as ops
from zk_registry.fake_tree import Touched, Tree
from zk_registry.paths import parents
from zk_registry.states import SessionState, StateCallback

Schedule = Callable[["FakeSession", Callable[[], None]], None]


class FakeZooKeeper:
    """The server's side: one tree, many sessions. Thread: any, one operation at a time.

    ``schedule(session, notify)`` is given each watch that fires, to call ``notify()`` when its time has come; without
    it they wait for ``deliver()``. At ``lost_reply_rate`` an operation ends in ConnectionLoss, half of them done.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        clock: Clock | None = None,
        lost_reply_rate: float = 0.0,
        schedule: Schedule | None = None,
    ) -> None:
        self.clock: Clock = clock or ManualClock()
        self.random = Random(seed)
        self.lost_reply_rate = lost_reply_rate
        self._schedule = schedule or (lambda session, notify: self._fired.append(notify))
        self._fired: deque[Callable[[], None]] = deque()
        self._tree = Tree()
        self._watches: dict[Touched, dict[_Watch, None]] = {}
        self._living: dict[int, FakeSession] = {}
        self._silent_since: dict[int, float] = {}
        self._last_session_id = 0
        self.lock = threading.RLock()

    def session(self, timeout_s: float = 6.0) -> FakeSession:
        """A new client, connected."""
        session = FakeSession(self, timeout_s)
        session.start()
        return session

    def deliver(self, at_most: int | None = None) -> int:
        """Hand over the watches that fired, oldest first; return how many. Those they cause wait for the next call."""
        with self.lock:
            n = len(self._fired) if at_most is None else min(at_most, len(self._fired))
            now = [self._fired.popleft() for _ in range(n)]
        for notify in now:
            notify()
        return n

    def tick(self) -> None:
        """End every session that has been silent for its timeout."""
        now = self.clock.monotonic()
        with self.lock:
            for session_id, since in list(self._silent_since.items()):
                if now - since >= self._living[session_id].timeout_s:
                    self.end(session_id)

    # -- the server's side of a session ---------------------------------------------------------------------------

    def begin(self, session: FakeSession) -> int:
        """A new session id for a client."""
        with self.lock:
            self._last_session_id += 1
            self._living[self._last_session_id] = session
            return self._last_session_id

    def end(self, session_id: int) -> None:
        """The session is over: its ephemerals go, and whoever watched them hears of it."""
        with self.lock:
            session = self._living.pop(session_id, None)
            if session is None:
                return
            self._silent_since.pop(session_id, None)
            for watch in session.watching:
                self.forget(watch)
            for path in self._tree.owned_by(session_id):
                self._fire(self._tree.write((ops.Delete(path),), session_id))

    def is_living(self, session_id: int) -> bool:
        return session_id in self._living

    def hear(self, session_id: int, heard: bool) -> None:
        """Whether heartbeats of a session arrive from now on."""
        with self.lock:
            if heard:
                self._silent_since.pop(session_id, None)
            elif session_id in self._living:
                self._silent_since.setdefault(session_id, self.clock.monotonic())

    def post(self, watch: _Watch) -> None:
        """Send a watch's notification on its way."""
        self._schedule(watch.session, watch.notify)

    def forget(self, watch: _Watch) -> None:
        """Take a watch back that has not fired."""
        self._watches.get(watch.key, {}).pop(watch, None)

    def apply(self, operation: ops.Operation, session_id: int, watch: _Watch | None) -> Any:
        """Do one operation for a session; leave ``watch`` if it is to be left."""
        match operation:
            case ops.Children(path):
                names = self._tree.children(path)
                self._leave(watch)
                return names
            case ops.Get(path):
                node = self._tree.get(path)
                self._leave(watch)
                return node
            case ops.Exists(path):
                self._leave(watch)
                return self._tree.exists(path)
            case ops.Create(path, _, _, make_parents):
                if make_parents:
                    for parent in parents(path):
                        if self._tree.exists(parent) is None:
                            self._fire(self._tree.write((ops.Create(parent),), session_id))
                created = self._tree.named(operation).path
                self._fire(self._tree.write((operation,), session_id))
                return created
            case ops.Set(path):
                self._fire(self._tree.write((operation,), session_id))
                return self._tree.version(path)
            case ops.Delete():
                self._fire(self._tree.write((operation,), session_id))
                return None
            case ops.DeleteIfMine(path):
                found = self._tree.exists(path)
                if found is None or found.ephemeral_owner != session_id:
                    return False
                self._fire(self._tree.write((ops.Delete(path),), session_id))
                return True
            case ops.Multi(operations):
                self._fire(self._tree.write(operations, session_id))
                return None
            case ops.Sync():
                return None
            case ops.Pipeline():
                raise AssertionError("a session takes a pipeline apart")

    def _leave(self, watch: _Watch | None) -> None:
        if watch is not None:
            self._watches.setdefault(watch.key, {})[watch] = None
            watch.session.watching[watch] = None

    def _fire(self, touched: list[Touched]) -> None:
        for key in touched:
            for watch in self._watches.pop(key, ()):
                del watch.session.watching[watch]
                self.post(watch)


class _Watch:
    """One one-shot watch of one session."""

    def __init__(self, session: FakeSession, watcher: Callable[[str], None], key: Touched) -> None:
        self.session, self.key, self._watcher = session, key, watcher

    def notify(self) -> None:
        if not self.session.is_closed:
            self._watcher(self.key[1])


class FakeSession:
    """The client's side, a ``Session`` like ``ZooKeeperSession``; state callbacks come at once, in the same thread.

    ``suspend`` and ``resume`` cut and mend its connection; ``expire`` ends its session at the server behind its back,
    as when the client is paused for too long: it notices at its next operation; ``resume()`` begins a new session.
    """

    def __init__(self, world: FakeZooKeeper, timeout_s: float) -> None:
        self._world, self.timeout_s = world, timeout_s
        self.state = SessionState.LOST
        self.session_id = 0
        self.incarnation = 0
        self.trouble: str | None = None
        self.failure: Kafka2011Error | None = None
        self.is_closed = False
        self.watching: dict[_Watch, None] = {}
        self._callbacks: list[StateCallback] = []
        self._losses: deque[bool] = deque()

    def on_state(self, callback: StateCallback) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    def start(self) -> None:
        if not self.is_closed and self.state is SessionState.LOST:
            self.session_id = self._world.begin(self)
            self.incarnation += 1
            self._become(SessionState.CONNECTED)

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.state = SessionState.LOST
            self._world.end(self.session_id)

    def perform(self, operation: ops.Operation, watcher: Callable[[str], None] | None = None) -> Any:
        """Do it, or raise a RegistryError."""
        if isinstance(operation, ops.Pipeline):
            return tuple(self._answer(each, watcher) for each in operation.operations)
        path = getattr(operation, "path", "/")
        with self._world.lock:
            if self.state is SessionState.SUSPENDED:
                raise ops.ConnectionLoss(path, "suspended; nothing was sent")
            if self.state is SessionState.LOST:
                raise ops.SessionExpired(path)
            if not self._world.is_living(self.session_id):
                self._lose_session()
                raise ops.SessionExpired(path)
            watch = None
            if watcher is not None and getattr(operation, "watch", False):
                watch = _Watch(self, watcher, ("children" if isinstance(operation, ops.Children) else "data", path))
            lost = self._is_lost()
            if lost is False:
                raise ops.ConnectionLoss(path, "the request was lost")
            answer = self._world.apply(operation, self.session_id, watch)
            if lost:
                raise ops.ConnectionLoss(path, "the answer was lost")
            return answer

    def _answer(self, operation: ops.Operation, watcher: Callable[[str], None] | None) -> Any:
        try:
            return self.perform(operation, watcher)
        except ops.RegistryError as error:
            return error

    # -- faults ---------------------------------------------------------------------------------------------------

    def lose_reply(self, *, applied: bool) -> None:
        """The next operation ends in ConnectionLoss: done and not told, or never arrived."""
        self._losses.append(applied)

    def suspend(self) -> None:
        """Cut the connection: heartbeats stop, watches are lost."""
        with self._world.lock:
            if self.state is SessionState.CONNECTED:
                self._world.hear(self.session_id, False)
                self._become(SessionState.SUSPENDED)
                self._lose_watches()

    def resume(self) -> None:
        """Mend the connection: the same session if the server still has it, else LOST and then a new one."""
        if self.state is SessionState.LOST:
            self.start()
        elif self._world.is_living(self.session_id):
            self._world.hear(self.session_id, True)
            self._become(SessionState.CONNECTED)
        else:
            self._lose_session()
            self.start()

    def expire(self) -> None:
        """End the session at the server; the client does not know yet."""
        self._world.end(self.session_id)

    def mislead(self) -> None:
        """Tell the client that its session is over while the server keeps it: a leader fell while ending it."""
        with self._world.lock:
            self._world.hear(self.session_id, False)
            self._lose_session()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _is_lost(self) -> bool | None:
        """None: this operation's answer arrives. True: done but not told. False: never done."""
        if self._losses:
            return self._losses.popleft()
        if self._world.lost_reply_rate and self._world.random.random() < self._world.lost_reply_rate:
            return self._world.random.random() < 0.5
        return None

    def _lose_session(self) -> None:
        self._become(SessionState.LOST)
        self._lose_watches()

    def _lose_watches(self) -> None:
        lost, self.watching = self.watching, {}
        for watch in lost:
            self._world.forget(watch)
            self._world.post(watch)

    def _become(self, state: SessionState) -> None:
        if self.state is not state:
            self.state = state
            for callback in tuple(self._callbacks):
                callback(state)
