"""More or fewer replicas of partitions that there are: what stays, and who gets the new ones."""

from __future__ import annotations

from random import Random

import pytest

from kafka2011.config import load_config
from since2011.server.broker_plugin import ModernPlugin
from since2011.topics.administration import Administration
from since2011.topics.errors import InvalidReplicationFactor
from since2011.topics.placement import replicated
from since2011.topics.zookeeper_store import ZooKeeperStore
from zk_registry.fake import FakeZooKeeper


def test_what_there_is_stays_and_brokers_with_least_get_more() -> None:
    """``kafka2011 reassign --replicas``: the first replica stays first; the least loaded come in."""
    brokers = dict.fromkeys((1, 2, 3))
    assert replicated({0: (1,), 1: (1,), 2: (1,)}, brokers, 2) == {0: (1, 2), 1: (1, 3), 2: (1, 2)}
    assert replicated({0: (1, 2, 3)}, brokers, 1) == {0: (1,)}


def test_replicas_on_brokers_that_are_gone_are_replaced() -> None:
    """Whoever is not there any more holds nothing; where too few are there, it is said."""
    assert replicated({0: (9, 2)}, dict.fromkeys((1, 2, 3)), 2) == {0: (2, 1)}
    with pytest.raises(InvalidReplicationFactor, match="2 brokers"):
        replicated({0: (1,)}, dict.fromkeys((1, 2)), 3)


def test_a_rack_gets_a_second_replica_only_when_each_has_one() -> None:
    """Rack-aware: copies go to other racks first."""
    assert replicated({0: (1,)}, {1: "a", 2: "a", 3: "b"}, 2) == {0: (1, 3)}


def test_a_broker_that_others_cannot_talk_to_keeps_one_copy() -> None:
    """Behind TLS or a login there is no replication yet: 38 says so, and nothing is made (docs/since-2011.md)."""
    store = ZooKeeperStore(FakeZooKeeper().session(), 1, replicates=False)
    config = load_config(flags={}, extra_settings=ModernPlugin.SETTINGS)
    administration = Administration(config, store, 1, Random(1))
    with pytest.raises(InvalidReplicationFactor, match="one copy"):
        administration.place_new("t", 1, 2)
