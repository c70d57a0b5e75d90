"""Nodes of a living consumer that somebody deletes or changes."""

from __future__ import annotations

import pytest

from consumers.algorithm1.steps import Start, Stop
from consumers.events import ClaimBlocked, ClaimTakenOut, IdTakenOut, RebalanceDone, RebalanceStarted, SessionLost
from consumers.groups import ZooKeeperGroups
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
    """A node put in the place of ours is waited for, and its partition is not delivered meanwhile (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()
    cluster.registry.perform(Multi((Delete(OWNER), Create(OWNER, b"stranger"))))
    cluster.zookeeper.deliver()
    a.settle()

    assert part(2) not in a.reading and cluster.owner(part(2)) == "stranger"


@pytest.mark.parametrize("ephemeral", [False, True])
def test_a_node_of_nobody_in_the_group_keeps_one_partition_from_us_and_no_other(
    cluster: Cluster, ephemeral: bool
) -> None:
    """A stranger's owner node, permanent or of its own session: that partition is left out and named, once; the others
    are read, changes of the group do not matter, and when the node is gone the partition is taken (Issue 19 B9)."""
    stranger = cluster.zookeeper.session()
    stranger.perform(Create(OWNER, b"a stranger", ephemeral=ephemeral, make_parents=True))
    a = Driven(cluster, "a")
    a.settle()
    assert a.reading.keys() == {part(0), part(1), part(3)}
    (told,) = a.events(ClaimBlocked)
    assert (told.partition, told.holder, bool(told.session)) == (part(2).partition, "a stranger", ephemeral)

    cluster.topic("t", 5)
    cluster.zookeeper.deliver()
    a.settle()
    assert len(a.reading) == 4 and len(a.events(ClaimBlocked)) == 1
    started = len(a.events(RebalanceStarted))
    a.member.dirty = True
    a.settle()
    assert len(a.events(RebalanceStarted)) == started, "what is read stays right without it"
    assert cluster.owner(part(2)) == "a stranger", "and nobody touches it"

    stranger.perform(Delete(OWNER))
    cluster.zookeeper.deliver()
    a.settle()
    assert len(a.reading) == 5 and cluster.owner(part(2)) == "g_a-1-0"
    assert "the node in the way of t/0-2 is gone" in a.events(RebalanceDone)[-1].reason


def test_a_description_of_the_group_names_a_node_that_is_nobodys(cluster: Cluster) -> None:
    """A permanent owner node owns nothing; whose it says it is, is told (Issue 19 B9)."""
    cluster.registry.perform(Create(OWNER, b"a stranger", make_parents=True))
    Driven(cluster, "a").settle()

    rows = {row.partition: row for row in ZooKeeperGroups(cluster.registry).describe("g") or []}
    assert (rows["0-2"].owner, rows["0-2"].in_the_way) == (None, "a stranger")
    assert (rows["0-1"].owner, rows["0-1"].in_the_way) == ("g_a-1-0", None)


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
