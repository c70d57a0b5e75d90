"""A lease, not only a session: until when what a session owns is surely still its own.

Who is cut off from ZooKeeper is told so by nobody: the server ends the session by its own clock, others take over, and
the old owner goes on. So whoever acts by right of a session stops by itself, before the server can have ended it: a
session lasts at least its timeout from the moment the server last heard of it, which is not before the last request
that was answered was sent. The margin is for clocks that do not run alike.

    begin(term)             a new session; what the last one claimed is lost
    heard(term, asked_at)   ZooKeeper answered, in session ``term``, what was asked at ``asked_at``
    holds(term)             what was claimed in session ``term`` is still ours, whatever happens now

A term is the session's ``incarnation``: what was claimed in one session is never good by right of the next.

Paper: §3.2 (ownership by ephemeral nodes); what an owner does that cannot be told is not in it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from kafka2011.clock import SYSTEM_CLOCK, Clock
from zk_registry.operations import Create, Delete, Multi, Operation, Set, Sync
from zk_registry.states import Session

_MARGIN = 1 / 6
"""Of the session timeout."""
_THROUGH_THE_LEADER = (Create, Set, Delete, Multi, Sync)
"""A read may be answered by a server that has lost its leader, which counts the sessions, and does not know yet."""


class Lease:
    """The lease of one client's sessions, one after the other. Thread: any."""

    def __init__(self, timeout_s: float, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.length_s = timeout_s * (1 - _MARGIN)
        self._clock = clock
        self._lock = threading.Lock()
        self._term = 0
        self._until = float("-inf")

    def begin(self, term: int) -> None:
        """The session before ``term`` is over, and its lease with it."""
        with self._lock:
            if term > self._term:
                self._term, self._until = term, float("-inf")

    def heard(self, term: int, asked_at: float) -> None:
        """Renew: the server has answered, in session ``term``, what was asked at ``asked_at`` (monotonic)."""
        self.begin(term)
        with self._lock:
            if term == self._term:
                self._until = max(self._until, asked_at + self.length_s)

    def holds(self, term: int) -> bool:
        """Whether nobody else can own what session ``term`` has claimed."""
        return self.left_s(term) > 0

    def left_s(self, term: int) -> float:
        """For how long it holds if nothing more is heard; 0 when it does not."""
        with self._lock:
            return max(0.0, self._until - self._clock.monotonic()) if term == self._term else 0.0


class LeasedSession:
    """A registry whose answers renew a lease. Thread: as its session."""

    def __init__(self, session: Session, lease: Lease, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._session, self._lease, self._clock = session, lease, clock

    @property
    def session_id(self) -> int:
        return self._session.session_id

    def perform(self, operation: Operation, watcher: Callable[[str], None] | None = None) -> Any:
        """Do one operation; if the answer proves that the session lives, note it."""
        term, asked_at = self._session.incarnation, self._clock.monotonic()
        answer = self._session.perform(operation, watcher)
        if isinstance(operation, _THROUGH_THE_LEADER) and self._session.incarnation == term:
            self._lease.heard(term, asked_at)
        return answer

    def renew(self) -> None:
        """Ask for nothing but an answer."""
        self.perform(Sync("/"))
