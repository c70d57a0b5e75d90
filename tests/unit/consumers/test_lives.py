"""One consumer through several sessions: what it leaves behind, and where it goes on."""

from __future__ import annotations

import pytest

from consumers.algorithm1.steps import Start, Stop
from consumers.events import AttemptFailed, CommitFailed, SessionLost
from tests.unit.consumers.conftest import Cluster, Driven, part
from zk_registry import paths
from zk_registry.operations import Create, Delete, Exists, Set

EVERYTHING = {part(i) for i in range(4)}


def reborn(cluster: Cluster, member: Driven) -> None:
    """Let a member notice that its session is over, and begin anew."""
    cluster.zookeeper.deliver()
    member.member.dirty = True
    member.settle()
    assert member.events(SessionLost)


def reading_to(cluster: Cluster, committed: int, reached: int) -> Driven:
    """A member that committed at one offset and has read on since."""
    member = Driven(cluster, "a")
    member.settle()
    member.reading = dict.fromkeys(member.reading, committed)
    cluster.clock.advance(20)
    member.settle()
    assert cluster.offset(part(0)) == committed
    member.reading = dict.fromkeys(member.reading, reached)
    return member


@pytest.mark.parametrize(
    ("stored", "goes_on_at"),
    [(100, 150), (120, 150), (150, 150), (170, 170), (90, 90)],
    ids=["nobody read", "another read less", "another read as much", "another read further", "somebody rewound"],
)
def test_after_a_lost_session_it_goes_on_where_the_application_is(
    cluster: Cluster, stored: int, goes_on_at: int
) -> None:
    """What an application finished it is not given again, unless somebody moved the group back (§3.3)."""
    a = reading_to(cluster, committed=100, reached=150)
    a.session.expire()
    cluster.registry.perform(Set(paths.offset("g", "t", part(0).partition), b"%d" % stored))
    reborn(cluster, a)

    assert a.reading[part(0)] == goes_on_at
    assert a.reading[part(1)] == 150, "nobody touched the others"


def test_offsets_that_are_gone_are_not_remembered(cluster: Cluster) -> None:
    """An offset that somebody deleted means: begin as if nothing were stored (§3.2)."""
    a = reading_to(cluster, committed=100, reached=150)
    a.session.expire()
    cluster.registry.perform(Delete(paths.offset("g", "t", part(0).partition)))
    reborn(cluster, a)

    assert a.reading[part(0)] is None


@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_answer_is_asked_for_again(cluster: Cluster, applied: bool) -> None:
    """Whichever answer is lost between joining and leaving, the one operation is repeated, not the rebalance, and what
    the application finished is stored (§3.2)."""
    whole = Driven(cluster, "whole")
    whole.settle()
    whole.leave()
    n_steps = len(whole.steps)
    for number in range(n_steps):
        a = Driven(cluster, f"a{number}")
        for _ in range(number):
            a.step()
        a.session.lose_reply(applied=applied)
        if Start not in map(type, a.steps):
            a.settle()
        assert a.reading.keys() == EVERYTHING
        a.reading = dict.fromkeys(a.reading, 100 + number)
        a.leave()

        assert not a.events(AttemptFailed) and not a.events(CommitFailed)
        assert {cluster.offset(owned) for owned in EVERYTHING} == {100 + number}
        assert {cluster.owner(owned) for owned in EVERYTHING} == {None}


def test_nodes_of_a_session_called_over_too_early_are_taken_out(cluster: Cluster) -> None:
    """A client told that its session is over, while the server still keeps it, does not wait for its own old nodes:
    it deletes them and goes on at once (§3.2)."""
    a = reading_to(cluster, committed=100, reached=150)
    waited = len(a.steps)
    a.session.mislead()
    reborn(cluster, a)

    assert a.reading.keys() == EVERYTHING
    assert {cluster.owner(owned) for owned in EVERYTHING} == {"g_a-2-0"}
    assert cluster.value(paths.consumer_id("g", "g_a-1")) is None
    assert not [step for step in a.steps[waited:] if "failed attempt" in getattr(step, "why", "")]


def test_a_strangers_node_is_not_taken_for_our_own_old_one(cluster: Cluster) -> None:
    """When the old session really goes while its nodes are being taken out, its successor's are left alone (§3.2)."""
    a = reading_to(cluster, committed=100, reached=150)
    old = a.session.session_id
    owner = paths.owner("g", "t", part(0).partition)
    a.session.mislead()
    cluster.zookeeper.deliver()
    a.member.dirty = True
    a.until(lambda step: isinstance(step, Stop))
    a.until(lambda step: isinstance(step, Exists) and step.path == owner)
    # Between looking at the node and deleting it: the old session ends, and a stranger claims.
    cluster.zookeeper.end(old)
    cluster.registry.perform(Create(owner, b"stranger", ephemeral=True))
    a.settle()

    assert cluster.owner(part(0)) == "stranger" and part(0) not in a.reading
