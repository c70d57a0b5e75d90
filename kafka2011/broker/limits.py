"""How many connections, how long they may take, how much half-received data there may be.

A broker that is left alone on a network must stay up whatever is sent to it, and let newcomers in whoever sits there
already. At a limit somebody gives way, in this order:

    the oldest that never sent a whole request, of the address with the most connections
    the quietest of that address: it has more places than the newcomer's
    the quietest of the newcomer's own address, if it is idle
    the newcomer

So nobody is shut out by others who sit still, and nobody can push out those with fewer connections than they have
themselves. A few places beyond the limit are for programs on this machine. All limits are settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from kafka2011.broker.addresses import is_loopback
from kafka2011.broker.principal import Principal

IDLE_ENOUGH_S = 10.0
"""Who says and hears nothing for so long may lose the place to somebody else of the same address."""


class Connection(Protocol):
    """What the limits must know of a connection."""

    address: str
    principal: Principal
    opened: float
    active: float
    """When a byte last moved, either way."""
    frame_begun: float | None
    """When the half-received request began to arrive."""
    n_requests: int
    heard: bool
    """Whether it ever sent a byte."""

    def drop(self, kind: str, reason: str) -> None:
        """Close it now."""

    def hold(self, held: bool) -> None:
        """Stop reading from it, or go on."""


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """The numbers, times in seconds."""

    connections: int = 1000
    per_address: int = 250
    local_reserve: int = 8
    first_byte_s: float = 60.0
    frame_s: float = 30.0
    idle_s: float = 600.0
    in_flight_bytes: int = 64 << 20


class Limits:
    """Admit, account for and time out connections. Thread: reactor."""

    def __init__(self, settings: LimitSettings, now: Callable[[], float]) -> None:
        self.settings = settings
        self._now = now
        # Insertion order is age: the first is the oldest.
        self._open: dict[Connection, None] = {}
        self._per_address: dict[str, int] = {}
        self._partial: dict[Connection, int] = {}
        self._partial_total = 0
        self._full = False

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._open))

    @property
    def partial_bytes(self) -> int:
        """Bytes of half-received requests of all connections."""
        return self._partial_total

    def admit(self, connection: Connection) -> None:
        """Count a new connection; at a limit somebody gives way, and that may be the new one itself."""
        limits, address = self.settings, connection.address
        self._open[connection] = None
        count = self._per_address[address] = self._per_address.get(address, 0) + 1
        most = limits.connections + (limits.local_reserve if is_loopback(address) else 0)
        if count > limits.per_address:
            self._gives_way(connection, address).drop("limit", f"more than {limits.per_address} of one address")
        elif len(self._open) > most:
            crowded = max(self._per_address, key=self._per_address.__getitem__)
            self._gives_way(connection, crowded).drop("limit", f"more than {limits.connections} connections")

    def _gives_way(self, newcomer: Connection, address: str) -> Connection:
        """Who of ``address`` makes room for the newcomer."""
        there = [c for c in self._open if c.address == address and c is not newcomer]
        silent = next((c for c in there if c.n_requests == 0), None)
        if silent is not None:
            return silent
        quietest = min(there, key=lambda c: c.active, default=newcomer)
        if self._per_address[address] > self._per_address[newcomer.address]:
            return quietest
        return quietest if self._now() - quietest.active >= IDLE_ENOUGH_S else newcomer

    def forget(self, connection: Connection) -> None:
        """A connection is gone. Idempotent."""
        if connection not in self._open:
            return
        del self._open[connection]
        left = self._per_address[connection.address] - 1
        if left:
            self._per_address[connection.address] = left
        else:
            del self._per_address[connection.address]
        self.partial(connection, 0)

    def partial(self, connection: Connection, size: int) -> None:
        """Account for ``size`` half-received bytes; over the limit, all but the oldest holder wait for it."""
        before = self._partial.pop(connection, 0) if not size else self._partial.get(connection, 0)
        if size:
            self._partial[connection] = size
        self._partial_total += size - before
        was_full, self._full = self._full, self._partial_total > self.settings.in_flight_bytes
        if self._full or was_full:
            oldest = next(iter(self._partial), None)
            for holder in self._partial:
                holder.hold(self._full and holder is not oldest)

    def sweep(self) -> None:
        """Drop every connection that has run out of time. Called by a timer."""
        now = self._now()
        for connection in list(self._open):
            late = self._overdue(connection, now)
            if late is not None:
                connection.drop("timeout", late)

    def _overdue(self, connection: Connection, now: float) -> str | None:
        limits = self.settings
        if not connection.heard and now - connection.opened > limits.first_byte_s:
            return f"said nothing for {limits.first_byte_s:g} s"
        if connection.frame_begun is not None and now - connection.frame_begun > limits.frame_s:
            return f"its request was not whole after {limits.frame_s:g} s"
        if now - connection.active > limits.idle_s:
            return f"idle for {limits.idle_s:g} s"
        return None
