"""A broker's registration on the fake ZooKeeper: lost answers, expiry, its own past, strangers."""

from __future__ import annotations

import pytest

from kafka2011.clock import ManualClock
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress, BrokerPartition
from zk_registry.brokers import BrokerRegistry
from zk_registry.events import NodeTakenOut, OldRegistrationAwaited
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.operations import Children, ConnectionLoss, Create, Delete, Get, SessionExpired, Set
from zk_registry.registration import BrokerIdTaken, Registration

HERE = BrokerAddress(0, "127.0.0.1", 9092)


class SleepingClock(ManualClock):
    """Sleeping lets the world's sessions time out."""

    def __init__(self) -> None:
        super().__init__()
        self.world: FakeZooKeeper | None = None

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        assert self.world is not None
        self.world.tick()


@pytest.fixture
def clock() -> SleepingClock:
    return SleepingClock()


@pytest.fixture
def world(clock: SleepingClock) -> FakeZooKeeper:
    clock.world = FakeZooKeeper(clock=clock)
    return clock.world


def registration(session: FakeSession, clock: ManualClock, *, alive: bool = False, port: int = 9092) -> Registration:
    made = Registration(
        session,
        BrokerAddress(0, "127.0.0.1", port),
        started_ms=1300000000000,
        clock=clock,
        is_alive=lambda address: alive,
    )
    made.announce("clicks", 2)
    return made


def test_a_broker_writes_its_id_then_its_topics(world: FakeZooKeeper, clock: SleepingClock) -> None:
    """Id, host and port, and every topic with all its partitions are in the registry (§3.2)."""
    session = world.session()
    broker = registration(session, clock)
    broker.reconcile()
    broker.announce("views", 1)
    assert not broker.is_complete
    broker.reconcile()
    reader = BrokerRegistry(world.session())

    assert broker.is_complete
    assert session.perform(Get("/brokers/ids/0")).value == b"127.0.0.1-1300000000000:127.0.0.1:9092"
    assert reader.brokers() == {0: HERE}
    assert reader.partitions("clicks") == [BrokerPartition(0, 0), BrokerPartition(0, 1)]
    assert session.perform(Get("/brokers/topics/clicks/0")).value == b"2"
    assert session.perform(Get("/brokers/topics/views")).ephemeral_owner == 0


def test_the_modern_port_does_not_disturb_old_readers(world: FakeZooKeeper, clock: SleepingClock) -> None:
    """Today's port has a place of its own; the entries of 2011 stay as they were (docs/zookeeper.md)."""
    session = world.session()
    broker = registration(session, clock)
    broker.publish_modern("127.0.0.1:9192")
    broker.reconcile()

    assert BrokerRegistry(session).modern_addresses() == {0: BrokerAddress(0, "127.0.0.1", 9192)}
    assert session.perform(Children("/brokers")) == ("ids", "topics")


@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_answer_is_repaired(world: FakeZooKeeper, clock: SleepingClock, applied: bool) -> None:
    """Whether or not the lost request was done, trying again ends registered (reliability: lost replies)."""
    session = world.session()
    broker = registration(session, clock)
    session.lose_reply(applied=applied)

    with pytest.raises(ConnectionLoss):
        broker.reconcile()
    broker.reconcile()

    assert broker.is_complete and BrokerRegistry(session).brokers() == {0: HERE}


def test_everything_is_written_again_after_expiry(world: FakeZooKeeper, clock: SleepingClock) -> None:
    """A new session gets the id and every topic again (docs/zookeeper.md)."""
    session = world.session()
    broker = registration(session, clock)
    broker.reconcile()
    session.expire()
    reader = BrokerRegistry(world.session())
    assert reader.brokers() == {} and reader.partitions("clicks") == []

    with pytest.raises(SessionExpired):
        session.perform(Get("/"))
    session.resume()
    assert not broker.is_complete
    broker.reconcile()

    assert reader.brokers() == {0: HERE} and len(reader.partitions("clicks")) == 2


@pytest.mark.parametrize("deed", [Delete("/brokers/ids/0"), Set("/brokers/topics/clicks/0", b"7")])
def test_a_node_touched_by_hand_is_put_right(world: FakeZooKeeper, clock: SleepingClock, deed: Delete | Set) -> None:
    """What somebody deletes or changes is noticed by its watch, told, and written again (§3.2)."""
    session, journal, woken = world.session(), Journal(), []
    broker = Registration(
        session, HERE, started_ms=1300000000000, journal=journal, clock=clock, on_doubt=lambda: woken.append(1)
    )
    broker.announce("clicks", 2)
    broker.reconcile()
    for _ in range(2):  # the watch is set again each time
        woken.clear()
        world.session().perform(deed)
        world.deliver()
        assert woken
        session.lose_reply(applied=False)
        with pytest.raises(ConnectionLoss):
            broker.reconcile()
        broker.reconcile()

        assert session.perform(Get("/brokers/ids/0")).value == b"127.0.0.1-1300000000000:127.0.0.1:9092"
        assert session.perform(Get("/brokers/topics/clicks/0")).value == b"2"
        assert broker.is_complete
    assert [e.event.path for e in journal.since() if isinstance(e.event, NodeTakenOut)] == [deed.path] * 2


def test_the_node_of_ones_last_life_is_waited_out(world: FakeZooKeeper, clock: SleepingClock) -> None:
    """A broker restarted before its old session died waits for that, and then registers (reliability: restart)."""
    dead = world.session(timeout_s=6)
    registration(dead, clock).reconcile()
    dead.suspend()
    journal = Journal()
    session = world.session(timeout_s=6)
    restarted = Registration(session, HERE, started_ms=1300000009000, journal=journal, clock=clock)

    restarted.reconcile()

    assert session.perform(Get("/brokers/ids/0")).ephemeral_owner == session.session_id
    assert 6 <= clock.monotonic() < 7
    assert next(type(e.event) for e in journal.since()) is OldRegistrationAwaited


def test_a_living_stranger_with_the_same_id_is_named(world: FakeZooKeeper, clock: SleepingClock) -> None:
    """Two brokers with one id: the second refuses at once, names the first, and leaves it alone (docs/zookeeper.md)."""
    first = world.session()
    registration(first, clock).reconcile()

    with pytest.raises(BrokerIdTaken, match=r"broker id 0 is taken.*127\.0\.0\.1:9092, started 2011-03-13"):
        registration(world.session(), clock, alive=True, port=9093).reconcile()
    assert clock.monotonic() == 0
    assert first.perform(Get("/brokers/ids/0")).ephemeral_owner == first.session_id


def test_a_stranger_that_may_be_dead_is_waited_for(world: FakeZooKeeper, clock: SleepingClock) -> None:
    """A stranger that does not answer gets the time its session has; if it stays, the id is taken.

    See docs/zookeeper.md.
    """
    dead, living = world.session(timeout_s=6), world.session(timeout_s=6)
    registration(dead, clock).reconcile()
    dead.suspend()
    registration(living, clock, port=9093).reconcile()

    with pytest.raises(BrokerIdTaken, match=r"127\.0\.0\.1:9093"):
        registration(world.session(timeout_s=6), clock, port=9094).reconcile()


def test_a_garbage_id_node_is_reported_as_it_is(world: FakeZooKeeper, clock: SleepingClock) -> None:
    """A persistent node in the way is named with its content (docs/zookeeper.md)."""
    session = world.session()
    session.perform(Create("/brokers/ids/0", b"what\nis this", make_parents=True))

    with pytest.raises(BrokerIdTaken, match=r"what\\nis this"):
        registration(session, clock).reconcile()
