"""The lease: who acts by right of a session stops before the server can have ended it (issue 19 B11)."""

from __future__ import annotations

import pytest

from kafka2011.clock import ManualClock
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.lease import Lease, LeasedSession
from zk_registry.operations import ConnectionLoss, Create, Get, Operation, Sync


class Slow:
    """A session whose answers take ``takes_s``."""

    def __init__(self, session: FakeSession, clock: ManualClock) -> None:
        self._session, self._clock, self.takes_s = session, clock, 0.0

    def __getattr__(self, name: str) -> object:
        return getattr(self._session, name)

    def perform(self, operation: Operation, watcher: object = None) -> object:
        self._clock.advance(self.takes_s)
        return self._session.perform(operation, watcher)  # type: ignore[arg-type]


def test_it_ends_before_the_session_can() -> None:
    """Counted from when the answered request was sent, not from when the answer came, less a margin."""
    clock = ManualClock()
    world = FakeZooKeeper(clock=clock)
    slow = Slow(world.session(timeout_s=6.0), clock)
    lease = Lease(6.0, clock=clock)
    leased = LeasedSession(slow, lease, clock=clock)  # type: ignore[arg-type]
    assert not lease.holds(1)
    slow.takes_s = 2.0
    leased.renew()
    assert lease.left_s(1) == pytest.approx(3.0)
    clock.advance(2.9)
    assert lease.holds(1)
    clock.advance(0.2)
    assert not lease.holds(1)


def test_only_what_the_leader_has_answered_renews_it() -> None:
    """A read may come from a server that is cut off itself; no answer is no answer."""
    clock = ManualClock()
    session = FakeZooKeeper(clock=clock).session()
    lease = Lease(6.0, clock=clock)
    leased = LeasedSession(session, lease, clock=clock)
    leased.perform(Get("/"))
    assert not lease.holds(session.incarnation)
    session.suspend()
    with pytest.raises(ConnectionLoss):
        leased.perform(Sync("/"))
    assert not lease.holds(session.incarnation)
    session.resume()
    leased.perform(Create("/x"))
    assert lease.holds(session.incarnation)


def test_a_new_session_renews_nothing_of_the_old() -> None:
    """What was claimed in one session is another's to claim once it is over, however soon the next one begins."""
    clock = ManualClock()
    lease = Lease(6.0, clock=clock)
    lease.heard(1, clock.monotonic())
    assert lease.holds(1)
    lease.heard(2, clock.monotonic())
    assert lease.holds(2)
    assert not lease.holds(1)
    lease.heard(1, clock.monotonic())  # an answer that was long on its way
    assert not lease.holds(1)
