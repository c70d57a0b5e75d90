"""One request on its way through: who asks, in which version, what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred

from kafka2011.broker.principal import Principal
from since2011.server.sasl import Login
from since2011.wire.codec import Header, Struct

T = TypeVar("T")


class Caller(Protocol):
    """What a handler may know of the connection."""

    address: str
    principal: Principal
    reached: str
    """Our own address as the client dialled it."""
    login: Login | None
    told: set[str]

    def drop(self, kind: str, reason: str) -> None:
        """Close it at once."""

    def alone(self, size: int, work: Deferred[T]) -> Deferred[T]:
        """Look at no further request of this client until ``work`` on ``size`` bytes is done."""

    def close_after_answers(self) -> None:
        """Close it when what is owed has been sent."""

    def when_lost(self, tell: Callable[[], None]) -> None:
        """Call ``tell`` when it is closed, by whomever."""


@dataclass(frozen=True, slots=True)
class Long:
    """An answer of so many rows that it is written in a thread."""

    body: Struct


Answer = Struct | Long
MANY = 1_000
"""Rows that are many: handled in slices of so many, and then others have their turn."""


def answer_of(n_rows: int, body: Struct) -> Answer:
    """``body``, or that it is long."""
    return Long(body) if n_rows > MANY else body


@dataclass(frozen=True, slots=True)
class Call:
    """A request: its header, its body (fields as in the table), its connection."""

    header: Header
    body: Struct
    caller: Caller
    turn: Callable[[], Deferred[None]]
    """Wait until this answer is the next to leave: what is large is best fetched then, and not before."""

    @property
    def version(self) -> int:
        """The version of the request, and so of its answer."""
        return self.header.version

    @property
    def client_id(self) -> str:
        """What the client calls itself."""
        return self.header.client_id or ""

    @property
    def peer(self) -> dict[str, str]:
        """Who asks, as events name it."""
        return {"peer": self.caller.address, "principal": str(self.caller.principal)}

    def first_time(self, what: str) -> bool:
        """True once per connection for each ``what``: things worth one line are told once."""
        if what in self.caller.told:
            return False
        self.caller.told.add(what)
        return True
