"""The four registries on the fake ZooKeeper."""

from __future__ import annotations

import pytest

from kafka2011.events import Journal
from kafka2011.types import BrokerAddress, BrokerPartition
from zk_registry import paths
from zk_registry.brokers import BrokerRegistry
from zk_registry.consumers import ConsumerRegistry, Subscription, groups
from zk_registry.events import NodeIgnored
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.offsets import OffsetRegistry
from zk_registry.operations import Create, NoNode, Set
from zk_registry.owners import OwnerRegistry

P = BrokerPartition


@pytest.fixture
def world() -> FakeZooKeeper:
    return FakeZooKeeper()


@pytest.fixture
def session(world: FakeZooKeeper) -> FakeSession:
    return world.session()


def put(session: FakeSession, path: str, value: bytes) -> None:
    session.perform(Create(path, value, make_parents=True))


def ignored(journal: Journal) -> list[str]:
    return [entry.event.path for entry in journal.since() if isinstance(entry.event, NodeIgnored)]


def test_brokers_and_partitions_come_in_numeric_order(session: FakeSession) -> None:
    """Broker 10 comes after broker 9 (§3.2)."""
    for broker in (10, 9):
        put(session, f"/brokers/ids/{broker}", b"h-1:h:%d" % (9000 + broker))
        put(session, f"/brokers/topics/clicks/{broker}", b"2")
    registry = BrokerRegistry(session)

    assert list(registry.brokers().items()) == [(9, BrokerAddress(9, "h", 9009)), (10, BrokerAddress(10, "h", 9010))]
    assert registry.topics() == ["clicks"]
    assert registry.partitions("clicks") == [P(9, 0), P(9, 1), P(10, 0), P(10, 1)]
    assert registry.partitions("unknown") == []


def test_an_empty_registry_is_no_error(session: FakeSession) -> None:
    """Before the first broker there are no brokers (§3.2)."""
    registry = BrokerRegistry(session)

    assert registry.brokers() == {} and registry.topics() == [] and registry.modern_addresses() == {}
    assert groups(session) == [] and ConsumerRegistry(session, "g").members() == {}
    assert OwnerRegistry(session, "g").owners("t") == {} and OffsetRegistry(session, "g").topics() == []


def test_garbage_is_read_past_and_told_once(session: FakeSession) -> None:
    """One bad node hides no good one, and is reported once, not at every read (docs/zookeeper.md)."""
    journal = Journal()
    registry = BrokerRegistry(session, journal=journal)
    put(session, "/brokers/ids/0", b"h-1:h:9092")
    put(session, "/brokers/ids/1", b"{garbage}")
    put(session, "/brokers/ids/%2e%2e", b"h-1:h:9092")
    put(session, "/brokers/topics/t/0", b"1")
    put(session, "/brokers/topics/t/1", b"many")
    put(session, "/brokers/topics/sp ace", b"")

    for _ in range(2):
        assert list(registry.brokers()) == [0]
        assert registry.partitions("t") == [P(0, 0)] and registry.topics() == ["t"]
    assert ignored(journal) == ["/brokers/ids/%2e%2e", "/brokers/ids/1", "/brokers/topics/t/1"]


def test_a_reader_hears_of_the_first_broker(world: FakeZooKeeper, session: FakeSession) -> None:
    """A watcher left where nothing exists yet is called when it comes to exist, and for every change after (§3.2)."""
    registry, told = BrokerRegistry(session), []
    registry.brokers(told.append)

    put(world.session(), "/brokers/ids/0", b"h-1:h:1")
    world.deliver()
    assert told == ["/brokers/ids"]

    registry.brokers(told.append)
    world.session().perform(Set("/brokers/ids/0", b"h-2:h:2"))
    world.deliver()
    assert told[1:] == ["/brokers/ids/0"]


def test_members_are_read_with_their_subscriptions(session: FakeSession) -> None:
    """A member is in its group for as long as its session; a foreign text is told and passed over (§3.2)."""
    journal = Journal()
    registry = ConsumerRegistry(session, "g", journal=journal)
    registry.register("g_me", Subscription.fixed({"t": 2}))
    put(session, paths.consumer_id("g", "host:uuid"), b"t")
    put(session, paths.consumer_id("g", "bad"), b"{{{")

    assert registry.members() == {"g_me": Subscription.fixed({"t": 2}), "host:uuid": Subscription.fixed({"t": 1})}
    assert ignored(journal) == ["/consumers/g/ids/bad"] and groups(session) == ["g"]
    assert registry.leave("g_me") is True and registry.leave("g_me") is False


def test_only_one_owns_a_partition(world: FakeZooKeeper, session: FakeSession) -> None:
    """A claim fails while another holds the partition, and a stranger's node is never released (§3.2)."""
    mine, theirs = OwnerRegistry(session, "g"), OwnerRegistry(world.session(), "g")

    assert mine.claim("t", P(0, 1), "c-0") and mine.claim("t", P(0, 1), "c-0")
    assert not theirs.claim("t", P(0, 1), "d-0") and not theirs.release("t", P(0, 1))
    # The same name in another session is a former life of ours, and that node dies with it.
    assert not theirs.claim("t", P(0, 1), "c-0")
    assert theirs.owners("t") == {P(0, 1): "c-0"}
    assert mine.release("t", P(0, 1)) and theirs.claim("t", P(0, 1), "d-0")
    assert mine.owner("t", P(0, 1)) == "d-0"


def test_offsets_are_stored_together_and_survive(world: FakeZooKeeper, session: FakeSession) -> None:
    """A batch of offsets is written as a whole, existing and new ones, and outlives the session (§3.2)."""
    OffsetRegistry(session, "g").write("t", {P(0, 0): 5})
    OffsetRegistry(session, "g").write("t", {P(0, 0): 10, P(0, 1): 20})
    session.close()
    later = OffsetRegistry(world.session(), "g")

    assert later.read_all("t") == {P(0, 0): 10, P(0, 1): 20} and later.topics() == ["t"]


def test_a_fenced_write_needs_its_fence(session: FakeSession) -> None:
    """Without the writer's own node nothing is stored, not even one of the batch (reliability: zombie owner)."""
    registry = OffsetRegistry(session, "g")
    registry.write("t", {P(0, 0): 5})

    with pytest.raises(NoNode) as refusal:
        registry.write("t", {P(0, 0): 9, P(0, 1): 9}, fence="/consumers/g/ids/me")
    assert refusal.value.path == "/consumers/g/ids/me"
    assert registry.read_all("t") == {P(0, 0): 5}
    put(session, "/consumers/g/ids/me", b"")
    registry.write("t", {P(0, 0): 9}, fence="/consumers/g/ids/me")
    assert registry.read("t", P(0, 0)) == 9


def test_a_garbage_offset_is_none_and_told(session: FakeSession) -> None:
    """An offset that is no number is no offset, and said to be so (docs/zookeeper.md)."""
    journal = Journal()
    put(session, "/consumers/g/offsets/t/0-0", b"abc")
    put(session, "/consumers/g/offsets/t/zero", b"1")
    registry = OffsetRegistry(session, "g", journal=journal)

    assert registry.read_all("t") == {} and registry.read("t", P(7, 7)) is None
    assert set(ignored(journal)) == {"/consumers/g/offsets/t/0-0", "/consumers/g/offsets/t/zero"}
