"""The fake ZooKeeper's faults, on command."""

from __future__ import annotations

import pytest

from kafka2011.clock import ManualClock
from zk_registry.fake import FakeZooKeeper
from zk_registry.operations import (
    Children,
    ConnectionLoss,
    Create,
    Exists,
    Get,
    NodeExists,
    RegistryError,
    SessionExpired,
    Set,
)
from zk_registry.states import SessionState


def test_a_watch_comes_late_and_once() -> None:
    """A watch is one-shot, and arrives when delivered, not when it fires (§3.2)."""
    world = FakeZooKeeper()
    a, b = world.session(), world.session()
    told: list[str] = []
    a.perform(Children("/", watch=True), told.append)

    b.perform(Create("/x"))
    b.perform(Create("/y"))
    assert told == []
    assert world.deliver() == 1 and told == ["/"]
    assert world.deliver() == 0


def test_a_lost_reply_leaves_it_open_whether_it_was_done() -> None:
    """ConnectionLoss means perhaps done: the fake can do either (§3.2)."""
    session = FakeZooKeeper().session()

    session.lose_reply(applied=False)
    with pytest.raises(ConnectionLoss):
        session.perform(Create("/x"))
    assert session.perform(Exists("/x")) is None

    session.lose_reply(applied=True)
    with pytest.raises(ConnectionLoss):
        session.perform(Create("/x"))
    with pytest.raises(NodeExists):
        session.perform(Create("/x"))


def test_a_short_suspension_keeps_the_session() -> None:
    """Reconnecting within the timeout keeps session and ephemerals; watches must be set again (§3.2)."""
    clock = ManualClock()
    world = FakeZooKeeper(clock=clock)
    session, states, told = world.session(timeout_s=6), [], []
    session.on_state(states.append)
    session.perform(Create("/mine", ephemeral=True))
    session.perform(Get("/mine", watch=True), told.append)

    session.suspend()
    with pytest.raises(ConnectionLoss):
        session.perform(Get("/mine"))
    world.deliver()
    assert told == ["/mine"]
    clock.advance(5.9)
    world.tick()
    session.resume()

    assert session.perform(Get("/mine")).ephemeral_owner == session.session_id
    assert states == [SessionState.SUSPENDED, SessionState.CONNECTED] and session.incarnation == 1


def test_a_long_suspension_ends_the_session() -> None:
    """After the timeout the ephemerals are gone, others hear of it, and the next session is another one (§3.2)."""
    clock = ManualClock()
    world = FakeZooKeeper(clock=clock)
    session, other = world.session(timeout_s=6), world.session()
    states: list[SessionState] = []
    told: list[str] = []
    session.on_state(states.append)
    session.perform(Create("/mine", ephemeral=True))
    other.perform(Exists("/mine", watch=True), told.append)

    session.suspend()
    clock.advance(6)
    world.tick()
    world.deliver()
    assert told == ["/mine"] and other.perform(Exists("/mine")) is None
    first = session.session_id
    session.resume()

    assert states == [SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED]
    assert session.session_id != first and session.incarnation == 2


def test_a_paused_client_learns_of_its_expiry_at_its_next_word() -> None:
    """A session expired behind a client's back refuses the client's next operation (§3.2)."""
    session = FakeZooKeeper().session()
    session.perform(Create("/offset"))
    session.expire()

    assert session.state is SessionState.CONNECTED
    with pytest.raises(SessionExpired):
        session.perform(Set("/offset", b"1"))
    with pytest.raises(SessionExpired):
        session.perform(Set("/offset", b"1"))
    session.resume()
    assert session.perform(Set("/offset", b"1")) == 1


def test_faults_by_rate_are_the_same_for_the_same_seed() -> None:
    """One seed, one history (§3.2)."""

    def history(seed: int) -> list[str]:
        session = FakeZooKeeper(seed=seed, lost_reply_rate=0.3).session()
        outcomes = []
        for n in range(50):
            try:
                session.perform(Create(f"/{n // 2}"))
                outcomes.append("done")
            except RegistryError as error:
                outcomes.append(type(error).__name__)
        return outcomes

    assert history(1) == history(1) != history(2)
    assert {"done", "ConnectionLoss", "NodeExists"} <= set(history(1))
