"""The metadata store on a real ZooKeeper: what brokers change, all of them see."""

from __future__ import annotations

from random import Random

import pytest

from since2011.topics.image import BrokerImage
from since2011.topics.zookeeper_store import ZooKeeperStore
from tests.property.since2011.store_changes import Model, step
from tests.waiting import until
from zk_registry.modern.registry import CHUNK
from zk_registry.modern.texts import Endpoint
from zk_registry.operations import Create, Get, Pipeline
from zk_registry.session import ZooKeeperSession
from zk_registry.testing import expire


def store_at(connect: str, broker_id: int) -> ZooKeeperStore:
    session = ZooKeeperSession(f"{connect}/modern", timeout_s=10, create_chroot=True)
    store = ZooKeeperStore(session, broker_id)
    store.start()
    store.register(BrokerImage(broker_id, (Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id),)))
    return store


@pytest.mark.parametrize("seed", range(3))
def test_two_brokers_follow_any_changes(zk_connect: str, seed: int) -> None:
    """Each broker's image has its own change at once and the other's soon, through lost sessions (design §3.1)."""
    random, model = Random(seed), Model()
    stores = [store_at(zk_connect, 1), store_at(zk_connect, 2)]

    def agrees(store: ZooKeeperStore) -> bool:
        try:
            model.agrees(store.image)
        except AssertionError:
            return False
        return True

    try:
        for n in range(25):
            who = random.randrange(2)
            if n == 12:
                session = stores[who]._session
                assert isinstance(session, ZooKeeperSession)
                epoch = stores[1 - who].image.brokers[who + 1].epoch
                expire(f"{zk_connect}/modern", session.session_id, session.password)
                until(
                    lambda who=who, epoch=epoch: (
                        (found := stores[1 - who].image.brokers.get(who + 1)) is not None and found.epoch > epoch
                    ),
                    "the broker is registered again",
                )
                until(lambda who=who: stores[who].trouble is None, "it is connected again")
            for store in stores:
                until(lambda store=store: agrees(store), "both have seen every change so far")
            step(stores[who], model, random)
            model.agrees(stores[who].image)
        assert stores[0].image.cluster_id == stores[1].image.cluster_id
    finally:
        for store in stores:
            store.close()


def test_a_topic_larger_than_a_transaction(zk_connect: str) -> None:
    """More partitions than fit one transaction are made, led and deleted (zk_registry.modern)."""
    store = store_at(zk_connect, 1)
    try:
        n = CHUNK + 5
        topic = store.create_topic("big", dict.fromkeys(range(n), (1,)), {})
        assert [partition.leader for partition in topic.partitions] == [1] * n
        store.delete_topic("big")
        assert not store.image.topics
    finally:
        store.close()


def test_a_pipeline_is_answered_in_order(zk_connect: str) -> None:
    """Thousands of operations sent at once are answered each for itself, in order (house.md, pipelined reads)."""
    with ZooKeeperSession(zk_connect) as session:
        creations = session.perform(Pipeline(tuple(Create(f"/n{i}", b"%d" % i) for i in range(1000))))
        assert creations == tuple(f"/n{i}" for i in range(1000))
        wanted = tuple(Get(f"/n{i}") for i in range(0, 2000, 2))
        answers = session.perform(Pipeline(wanted))
        assert [answer.value for answer in answers[:500]] == [b"%d" % i for i in range(0, 1000, 2)]
        assert {type(answer).__name__ for answer in answers[500:]} == {"NoNode"}
        assert len({answer.czxid for answer in answers[:500]}) == 500
