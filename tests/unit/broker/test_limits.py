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


def test_quiet_connections_shut_nobody_out() -> None:
    """Issue 19 B6: 998 connections of three addresses that each asked once and sit still: every newcomer gets in."""
    limits, clock = world(connections=1000, per_address=1000)
    crowd = [Client(limits, clock, address=f"10.0.0.{n % 3}", asked=1) for n in range(998)]
    for client in crowd:
        limits.admit(client)
    newcomers = [Client(limits, clock, address=f"10.1.0.{n}", asked=1) for n in range(50)]
    for client in newcomers:
        limits.admit(client)

    assert [client.dropped for client in newcomers] == [None] * 50
    assert sum(client.dropped is not None for client in crowd) == 48
    assert len(limits) == 1000


def test_the_default_leaves_room_for_other_addresses() -> None:
    """Issue 19 B6: out of the box three addresses cannot hold all places, however much they ask."""
    settings = LimitSettings()
    assert 3 * settings.per_address < settings.connections


def test_the_quietest_of_the_most_crowded_address_gives_way() -> None:
    """Issue 19 B6: who sits there longest without a word goes, and never somebody of a smaller address."""
    limits, clock = world(connections=4)
    lone = Client(limits, clock, address="10.0.0.9", asked=1)
    crowd = [Client(limits, clock, asked=1) for _ in range(3)]
    for client in (lone, *crowd):
        limits.admit(client)
    clock.advance(5)
    crowd[0].active = crowd[2].active = clock.monotonic()
    limits.admit(newcomer := Client(limits, clock, address="10.0.0.8", asked=1))

    assert [c.dropped for c in (lone, *crowd, newcomer)] == [None, None, "limit", None, None]


def test_who_has_most_places_pushes_nobody_else_out() -> None:
    """Issue 19 B6: a flood from one address costs that address its own idle connections, or is refused."""
    limits, clock = world(connections=4)
    lone = Client(limits, clock, address="10.0.0.9", asked=1)
    crowd = [Client(limits, clock, asked=1) for _ in range(3)]
    for client in (lone, *crowd):
        limits.admit(client)
    flood = [Client(limits, clock, asked=1) for _ in range(10)]
    for client in flood:
        limits.admit(client)
    assert {c.dropped for c in flood} == {"limit"} and {c.dropped for c in (lone, *crowd)} == {None}
    clock.advance(10)
    limits.admit(later := Client(limits, clock, asked=1))
    assert [c.dropped for c in (lone, *crowd, later)] == [None, "limit", None, None, None]


def test_this_machine_has_places_of_its_own() -> None:
    """Issue 19 B6: when every place is taken by strangers who are all busy, the administrator still gets in."""
    limits, clock = world(connections=3, local_reserve=1)
    strangers = [Client(limits, clock, address=f"10.0.0.{n}", asked=1) for n in range(4)]
    local = [Client(limits, clock, address=address, asked=1) for address in ("127.0.0.1", "::1")]
    for client in (*strangers, *local):
        limits.admit(client)

    assert [c.dropped for c in strangers] == [None, None, None, "limit"]
    assert [c.dropped for c in local] == [None, "limit"]


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
