"""Nodes of a living consumer that somebody deletes or changes."""

from __future__ import annotations

import pytest

from consumers.algorithm1.steps import Start, Stop
from consumers.events import ClaimTakenOut, IdTakenOut, RebalanceStarted, SessionLost
from tests.unit.consumers.conftest import Cluster, Driven, part
from zk_registry import paths
from zk_registry.events import NodeIgnored
from zk_registry.operations import Create, Delete, Multi, Set, Sync

EVERYTHING = {part(i) for i in range(4)}
ID = paths.consumer_id("g", "g_a-1")
OWNER = paths.owner("g", "t", part(2).partition)


@pytest.mark.parametrize("deed", [Delete(ID), Set(ID, b"rubbish"), Set(ID, b'{ "t": 7 }')])
def test_an_id_taken_out_is_written_again_and_delivery_goes_on(cluster: Cluster, deed: Delete | Set) -> None:
    """The claims of a living session are still ours: the id is put back, and nobody stops reading (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()
    before = len(a.steps)
    cluster.registry.perform(deed)
    cluster.zookeeper.deliver()
    a.member.dirty = True  # a changed value is seen at the next look, a deletion by the watch
    a.settle()

    assert cluster.value(ID) == a.member.subscription.encode()
    assert len(a.events(IdTakenOut)) == 1 and not a.events(SessionLost)
    assert a.reading.keys() == EVERYTHING
    assert not [step for step in a.steps[before:] if isinstance(step, Stop)]


def test_an_id_deleted_is_noticed_by_the_watch(cluster: Cluster) -> None:
    """Nobody has to wait for the next commit to find out (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()
    assert not a.member.dirty
    cluster.registry.perform(Delete(ID))
    cluster.zookeeper.deliver()

    assert a.member.dirty


def test_a_claim_taken_out_stops_delivery_and_is_made_again(cluster: Cluster) -> None:
    """Without its owner node a partition may be anybody's: stop, commit, and claim anew (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()
    a.reading = dict.fromkeys(a.reading, 60)
    for _ in range(2):  # the watch is set again each time
        before = len(a.steps)
        cluster.registry.perform(Delete(OWNER))
        cluster.zookeeper.deliver()
        assert a.member.dirty
        a.settle()
        cluster.zookeeper.deliver()

    kinds = [type(step) for step in a.steps[before:] if isinstance(step, Stop | Start)]
    assert kinds == [Stop, Start]
    assert [e.partition for e in a.events(ClaimTakenOut)] == [part(2).partition] * 2  # type: ignore[attr-defined]
    assert cluster.owner(part(2)) == "g_a-1-0" and a.reading == dict.fromkeys(EVERYTHING, 60)


def test_a_claim_replaced_by_a_strangers_is_not_read_on(cluster: Cluster) -> None:
    """A node put in the place of ours is waited for, and nothing is delivered meanwhile (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()
    cluster.registry.perform(Multi((Delete(OWNER), Create(OWNER, b"stranger"))))
    cluster.zookeeper.deliver()
    a.until(lambda step: getattr(step, "why", "") == "after a failed attempt")

    assert part(2) not in a.reading and cluster.owner(part(2)) == "stranger"


def test_letting_go_is_no_news_to_oneself(cluster: Cluster) -> None:
    """A rebalance deletes the member's own nodes; that does not make it look once more (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()
    cluster.topic("t", 5)
    cluster.zookeeper.deliver()
    a.settle()
    looked = sum(isinstance(step, Sync) for step in a.steps)
    cluster.zookeeper.deliver()

    assert not a.member.dirty and len(a.events(RebalanceStarted)) == 2
    assert looked == 3, "at the start, at the change, and in the rebalance"

    cluster.registry.perform(Delete(OWNER))
    cluster.zookeeper.deliver()
    assert a.member.dirty, "somebody else's doing is"


def test_a_filter_that_could_hang_the_group_is_passed_over_and_told_once(cluster: Cluster) -> None:
    """A node with a catastrophic pattern stops nobody (§3.2)."""
    stranger = cluster.zookeeper.session()
    stranger.perform(Create(paths.consumer_id("g", "g_x"), b"*1*(a+)+", ephemeral=True, make_parents=True))
    a = Driven(cluster, "a")
    a.settle()
    cluster.topic("t", 6)
    cluster.zookeeper.deliver()
    a.settle()

    assert len(a.reading) == 6
    assert [e.path for e in a.events(NodeIgnored)] == [paths.consumer_id("g", "g_x")]  # type: ignore[attr-defined]
