"""§3.2, what the paper says of the four registries."""

from __future__ import annotations

from kafka2011.types import BrokerAddress, BrokerPartition
from zk_registry import paths
from zk_registry.brokers import BrokerRegistry
from zk_registry.consumers import ConsumerRegistry, Subscription
from zk_registry.fake import FakeZooKeeper
from zk_registry.offsets import OffsetRegistry
from zk_registry.operations import Children, Get
from zk_registry.owners import OwnerRegistry
from zk_registry.registration import Registration

P = BrokerPartition


def test_broker_consumer_and_owner_entries_are_ephemeral_offsets_persistent() -> None:
    """§3.2: the paths "are ephemeral for the broker registry, the consumer registry and the ownership registry, and
    persistent for the offset registry"."""
    world = FakeZooKeeper()
    session, reader = world.session(), world.session()
    Registration(session, BrokerAddress(0, "h", 1), started_ms=0).reconcile()
    ConsumerRegistry(session, "g").register("g_c", Subscription.fixed({"t": 1}))
    OwnerRegistry(session, "g").claim("t", P(0, 0), "g_c-0")
    OffsetRegistry(session, "g").write("t", {P(0, 0): 42})

    session.close()

    for parent in (paths.BROKER_IDS, paths.consumer_ids("g"), paths.owners("g", "t")):
        assert reader.perform(Children(parent)) == ()
    assert reader.perform(Get(paths.offset("g", "t", P(0, 0)))).value == b"42"


def test_a_failed_broker_takes_its_partitions_along() -> None:
    """§3.2: "if a broker fails, all partitions on it are automatically removed from the broker registry"."""
    world = FakeZooKeeper()
    failing, living, reader = world.session(), world.session(), BrokerRegistry(world.session())
    for broker_id, session in ((0, failing), (1, living)):
        registration = Registration(session, BrokerAddress(broker_id, "h", 1), started_ms=0)
        registration.announce("t", 2)
        registration.reconcile()
    assert len(reader.partitions("t")) == 4

    failing.expire()

    assert list(reader.brokers()) == [1] and reader.partitions("t") == [P(1, 0), P(1, 1)]


def test_a_failed_consumer_loses_its_entry_and_all_it_owned() -> None:
    """§3.2: "the failure of a consumer causes it to lose its entry in the consumer registry and all partitions that it
    owns in the ownership registry"."""
    world = FakeZooKeeper()
    failing, survivor = world.session(), world.session()
    ConsumerRegistry(failing, "g").register("g_a", Subscription.fixed({"t": 1}))
    OwnerRegistry(failing, "g").claim("t", P(0, 0), "g_a-0")
    told: list[str] = []
    survivor.perform(Children(paths.consumer_ids("g"), watch=True), told.append)

    failing.expire()
    world.deliver()

    assert told == [paths.consumer_ids("g")]
    assert ConsumerRegistry(survivor, "g").members() == {} and OwnerRegistry(survivor, "g").owners("t") == {}
