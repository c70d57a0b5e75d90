"""A producer's picture of the cluster, kept up to date by watches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka2011.errors import ConnectionFailed
from kafka2011.types import BrokerAddress, BrokerPartition
from tests.waiting import until
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.operations import Create, Delete, Set
from zk_registry.router import ZooKeeperRouter

P = BrokerPartition


@pytest.fixture
def world() -> FakeZooKeeper:
    # Watches arrive at once here; the router's own thread makes them late enough.
    return FakeZooKeeper(schedule=lambda session, notify: notify())


@pytest.fixture
def admin(world: FakeZooKeeper) -> FakeSession:
    session = world.session()
    for broker in (0, 2, 10):
        session.perform(Create(f"/brokers/ids/{broker}", b"h-1:h:%d" % (9000 + broker), make_parents=True))
    session.perform(Create("/brokers/topics/clicks/10", b"2", make_parents=True))
    session.perform(Create("/brokers/topics/clicks/2", b"1"))
    return session


@pytest.fixture
def router(world: FakeZooKeeper, admin: FakeSession) -> Iterator[ZooKeeperRouter]:
    made = ZooKeeperRouter(world.session())
    yield made
    made.close()


def test_partitions_of_an_announced_topic_come_in_numeric_order(router: ZooKeeperRouter) -> None:
    """The candidates are the announced partitions on living brokers, 2 before 10 (docs/producer.md)."""
    assert list(router.partitions("clicks")) == [P(2, 0), P(10, 0), P(10, 1)]
    assert router.address(10) == BrokerAddress(10, "h", 9010)
    assert [broker.broker_id for broker in router.brokers()] == [0, 2, 10]


def test_an_unknown_topic_goes_to_partition_0_of_each_broker(router: ZooKeeperRouter) -> None:
    """A topic nobody has announced yet can be sent to any living broker (docs/producer.md)."""
    assert list(router.partitions("new")) == [P(0, 0), P(2, 0), P(10, 0)]


def test_a_new_topic_a_new_broker_and_a_dead_one_are_noticed(router: ZooKeeperRouter, admin: FakeSession) -> None:
    """The producer notices changes through watches, without being told to look (§3.2)."""
    assert len(router.partitions("new")) == 3
    admin.perform(Create("/brokers/topics/new/0", b"1", make_parents=True))
    until(lambda: list(router.partitions("new")) == [P(0, 0)], "the announced topic is seen")
    admin.perform(Set("/brokers/topics/new/0", b"2"))
    until(lambda: list(router.partitions("new")) == [P(0, 0), P(0, 1)], "the larger count is seen")
    admin.perform(Create("/brokers/ids/3", b"h-1:h:9003"))
    until(lambda: len(router.brokers()) == 4, "the new broker is seen")

    admin.perform(Delete("/brokers/ids/10"))
    until(lambda: len(router.brokers()) == 3, "the dead broker is gone")
    assert list(router.partitions("clicks")) == [P(2, 0)]
    with pytest.raises(ConnectionFailed, match="broker 10"):
        router.address(10)


def test_the_last_picture_stays_while_zookeeper_is_away(world: FakeZooKeeper, admin: FakeSession) -> None:
    """Without ZooKeeper a producer goes on with what it knew, and catches up afterwards (§3.2)."""
    session = world.session()
    router = ZooKeeperRouter(session)
    before = list(router.partitions("clicks"))
    session.suspend()
    admin.perform(Create("/brokers/topics/clicks/0", b"1"))

    assert list(router.partitions("clicks")) == before
    assert list(router.partitions("asked-for-now")) == [P(0, 0), P(2, 0), P(10, 0)]
    session.resume()
    until(lambda: P(0, 0) in router.partitions("clicks"), "the router has caught up")
    router.close()


def test_a_new_session_is_watched_again(world: FakeZooKeeper, admin: FakeSession) -> None:
    """After an expired session the picture is drawn anew and changes are noticed again (§3.2)."""
    session = world.session()
    router = ZooKeeperRouter(session)
    session.expire()
    session.resume()

    admin.perform(Delete("/brokers/ids/0"))
    until(lambda: len(router.brokers()) == 2, "the router watches in its new session")
    router.close()
