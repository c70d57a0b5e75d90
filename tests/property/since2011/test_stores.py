"""Both metadata stores follow any sequence of changes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from since2011.topics.file_store import FileStore
from since2011.topics.image import BrokerImage
from since2011.topics.zookeeper_store import ZooKeeperStore
from tests.property.since2011.store_changes import Model, step
from tests.waiting import until
from zk_registry.fake import FakeZooKeeper
from zk_registry.modern.texts import Endpoint

N_STEPS = 30


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32))
def test_a_file_follows_any_changes(seed: int) -> None:
    """The image is the sum of the changes, before and after a restart (design §3.1, point 1)."""
    random, model = Random(seed), Model()
    with tempfile.TemporaryDirectory() as directory:
        store = FileStore(Path(directory))
        store.start()
        cluster_id = store.image.cluster_id
        for _ in range(N_STEPS):
            step(store, model, random)
            model.agrees(store.image)
            if random.random() < 0.1:
                store = FileStore(Path(directory))
                store.start()
                assert store.image.cluster_id == cluster_id
                model.agrees(store.image)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32))
def test_two_brokers_on_zookeeper_follow_any_changes(seed: int) -> None:
    """Each broker's own image has its change at once, the other's soon, whoever loses connections (design §3.1)."""
    random, model, world = Random(seed), Model(), FakeZooKeeper()
    sessions = [world.session(), world.session()]
    stores = [ZooKeeperStore(session, broker_id) for broker_id, session in enumerate(sessions, start=1)]
    for store in stores:
        store.start()
    try:
        stores[0].register(BrokerImage(1, (Endpoint("PLAINTEXT", "h", 1),)))
        for _ in range(N_STEPS):
            who = random.randrange(2)
            if random.random() < 0.05:
                sessions[who].suspend()
                sessions[who].resume()
                world.deliver()
            other = stores[1 - who]
            until(lambda other=other: world.deliver() == 0 and _agrees(model, other), "the other broker has seen it")
            until(lambda who=who: world.deliver() == 0 and _agrees(model, stores[who]), "this one has, too")
            step(stores[who], model, random)
            model.agrees(stores[who].image)
        assert stores[1].image.cluster_id == stores[0].image.cluster_id
        until(lambda: world.deliver() == 0 and 1 in stores[1].image.brokers, "the other sees the broker")
    finally:
        for store in stores:
            store.close()


def _agrees(model: Model, store: ZooKeeperStore) -> bool:
    try:
        model.agrees(store.image)
    except AssertionError:
        return False
    return True
