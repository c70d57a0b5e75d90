"""The three states of a session, and what may still be assumed in each.

    CONNECTED  The server answers. Ephemerals of this session exist; watches are set.
    SUSPENDED  The server does not answer. The session and its ephemerals may live or be gone: nobody here can know.
               Registered watches are lost (their watchers were called). Go on with what needs no registry (serving,
               fetching); start nothing that needs to own something. The ephemerals certainly live for a third of the
               session timeout from here: a missing heartbeat is noticed after two thirds of it at the latest. After
               that someone else may own what was ours. LOST may never come: without a majority no session expires.
    LOST       The session is over and every ephemeral of it is gone. What was owned is owned no more. A new session
               begins by itself; register again when it is CONNECTED.

    CONNECTED -> SUSPENDED: connection lost.          SUSPENDED -> CONNECTED: reconnected in time, same session.
    SUSPENDED -> LOST: the server says it expired.    LOST -> CONNECTED: a new session; ``incarnation`` is one higher.
    CONNECTED, SUSPENDED -> LOST: also if the client itself has died; another is started in its place.

Before start() and after close() a session is LOST. A CONNECTED seen after a SUSPENDED proves nothing by itself: compare
``incarnation`` with the one under which the ephemerals were made.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from kafka2011.errors import Kafka2011Error
from zk_registry.operations import Registry


class SessionState(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


StateCallback = Callable[[SessionState], None]


class Session(Registry, Protocol):
    """A registry that also tells the state of its session: ``ZooKeeperSession`` or ``FakeSession``."""

    @property
    def state(self) -> SessionState: ...

    @property
    def incarnation(self) -> int:
        """How many sessions there have been, this one included."""

    @property
    def trouble(self) -> str | None:
        """Why there is no answer, in words; None while there is."""

    @property
    def failure(self) -> Kafka2011Error | None:
        """Why no session will ever begin as things are, unless somebody does something; None if one may."""

    @property
    def timeout_s(self) -> float:
        """How long the server keeps the session without hearing from it."""

    def on_state(self, callback: StateCallback) -> Callable[[], None]:
        """Call ``callback`` after each change of state; return a function that ends it."""

    def start(self) -> None:
        """Begin the first session."""

    def close(self) -> None:
        """End the session; its ephemerals go at once. May be called again."""
