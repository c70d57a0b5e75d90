"""Limits as plain logic: who is admitted, who waits, who is late."""

from __future__ import annotations

from kafka2011.broker.limits import Limits, LimitSettings
from kafka2011.broker.principal import ANONYMOUS
from kafka2011.clock import ManualClock


class Client:
    """A connection as the limits see it."""

    def __init__(self, limits: Limits, clock: ManualClock, address: str = "10.0.0.1", asked: int = 0) -> None:
        self.address = address
        self.principal = ANONYMOUS
        self.opened = self.active = clock.monotonic()
        self.frame_begun: float | None = None
        self.n_requests = asked
        self.heard = asked > 0
        self.held = False
        self.dropped: str | None = None
        self._limits = limits

    def drop(self, kind: str, reason: str) -> None:
        self.dropped = kind
        self._limits.forget(self)

    def hold(self, held: bool) -> None:
        self.held = held


def world(**settings: float) -> tuple[Limits, ManualClock]:
    clock = ManualClock()
    return Limits(LimitSettings(**settings), clock.monotonic), clock  # type: ignore[arg-type]


def test_the_oldest_silent_connection_makes_room() -> None:
    """At the limit the oldest connection that never asked is dropped, never one that did."""
    limits, clock = world(connections=3)
    asked, silent, other = Client(limits, clock, asked=1), Client(limits, clock), Client(limits, clock)
    newcomer = Client(limits, clock)
    for client in (asked, silent, other, newcomer):
        limits.admit(client)

    assert [c.dropped for c in (asked, silent, other, newcomer)] == [None, "limit", None, None]
    assert len(limits) == 3


def test_a_newcomer_goes_if_everybody_works() -> None:
    """If every connection has asked something the newcomer is closed."""
    limits, clock = world(connections=2)
    old = [Client(limits, clock, asked=1) for _ in range(2)]
    newcomer = Client(limits, clock)
    for client in [*old, newcomer]:
        limits.admit(client)

    assert newcomer.dropped == "limit"
    assert all(client.dropped is None for client in old)


def test_one_address_cannot_take_every_place() -> None:
    """The limit per address closes only connections of that address."""
    limits, clock = world(per_address=2)
    mine = [Client(limits, clock, asked=1) for _ in range(3)]
    others = [Client(limits, clock, address="10.0.0.2") for _ in range(2)]
    for client in [others[0], *mine, others[1]]:
        limits.admit(client)

    assert [c.dropped for c in mine] == [None, None, "limit"]
    assert [c.dropped for c in others] == [None, None]
    mine[0].drop("gone", "")
    limits.admit(again := Client(limits, clock, asked=1))
    assert again.dropped is None


def test_each_kind_of_lateness_has_its_limit() -> None:
    """No first byte, a request that is not whole, and idleness each end a connection, at their own time."""
    limits, clock = world(first_byte_s=10, frame_s=30, idle_s=100)
    silent, half, idle, busy = (Client(limits, clock) for _ in range(4))
    for client in (silent, half, idle, busy):
        limits.admit(client)
    for client in (half, idle, busy):
        client.heard = True
    half.frame_begun = 0.0
    fates: dict[float, list[str | None]] = {}
    for at in (10, 11, 30, 31, 100, 101):
        clock.advance(at - clock.monotonic())
        busy.active = half.active = clock.monotonic()
        limits.sweep()
        fates[at] = [client.dropped for client in (silent, half, idle, busy)]

    late = "timeout"
    assert fates == {
        10: [None] * 4,
        11: [late, None, None, None],
        30: [late, None, None, None],
        31: [late, late, None, None],
        100: [late, late, None, None],
        101: [late, late, late, None],
    }


def test_half_received_requests_wait_for_the_oldest() -> None:
    """Over the budget all holders but the oldest wait; when it is done the next may go on, below it all may."""
    limits, clock = world(in_flight_bytes=100)
    a, b, c = (Client(limits, clock) for _ in range(3))
    for client in (a, b, c):
        limits.admit(client)
    limits.partial(a, 60)
    limits.partial(b, 30)
    assert [x.held for x in (a, b, c)] == [False] * 3
    limits.partial(c, 30)
    assert [x.held for x in (a, b, c)] == [False, True, True]
    limits.partial(a, 90)
    assert [x.held for x in (a, b, c)] == [False, True, True]
    limits.partial(a, 0)
    assert [x.held for x in (a, b, c)] == [False] * 3
    assert limits.partial_bytes == 60
    limits.partial(b, 90)
    assert [x.held for x in (b, c)] == [False, True]
    b.drop("gone", "")
    assert not c.held
    assert limits.partial_bytes == 30
