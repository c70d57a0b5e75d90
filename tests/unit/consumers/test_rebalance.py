"""The rebalance generator, step by step, on a registry in memory."""

from __future__ import annotations

import pytest

from consumers.algorithm1.editions import PRINTED, SHIPPED, SOUND
from consumers.algorithm1.member import ConsumerIdInUse
from consumers.algorithm1.steps import Start, Stop, Wait
from consumers.events import (
    ClaimRefused,
    CommitFenced,
    GaveUp,
    OffsetUnreadable,
    RebalanceStarted,
    SessionLost,
)
from tests.unit.consumers.conftest import Cluster, Driven, part
from zk_registry import paths
from zk_registry.consumers import Subscription
from zk_registry.operations import Children, Create, Delete, DeleteIfMine, Multi, Sync


def everything(n: int = 4) -> set[object]:
    return {part(i) for i in range(n)}


def settle_all(cluster: Cluster, *members: Driven) -> None:
    """Let everybody react until nobody has anything to do."""
    for _ in range(20):
        cluster.zookeeper.deliver()
        if not any(m.member.dirty for m in members):
            return
        for member in members:
            if member.member.dirty:
                member.settle()
    raise AssertionError("the group does not come to rest")


def pair(cluster: Cluster, **options: object) -> tuple[Driven, Driven]:
    a = Driven(cluster, "a", **options)  # type: ignore[arg-type]
    a.settle()
    b = Driven(cluster, "b", **options)  # type: ignore[arg-type]
    b.until(lambda step: isinstance(step, (Start, Wait)))
    settle_all(cluster, a, b)
    b.settle()
    settle_all(cluster, a, b)
    return a, b


def test_a_lone_consumer_owns_everything(cluster: Cluster) -> None:
    """The only member of a group reads every partition of its topic (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()

    assert a.reading.keys() == everything()
    assert {cluster.owner(o) for o in a.reading} == {"g_a-1-0"}


def test_two_consumers_share_and_a_leave_gives_everything_back(cluster: Cluster) -> None:
    """Partitions are divided evenly; when a member leaves, the other takes its share over (§3.2)."""
    a, b = pair(cluster)
    assert len(a.reading) == len(b.reading) == 2
    assert a.reading.keys() | b.reading.keys() == everything()

    b.leave()
    settle_all(cluster, a)

    assert a.reading.keys() == everything()


def test_the_sound_order(cluster: Cluster) -> None:
    """Stop, commit, release, sync and read with watches, claim, start: in this order and no other (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()
    a.reading = dict.fromkeys(a.reading, 100)
    cluster.topic("t", 5)
    cluster.zookeeper.deliver()
    a.until(lambda step: isinstance(step, Stop))
    a.until(lambda step: isinstance(step, Start))

    tail = a.steps[max(i for i, step in enumerate(a.steps) if isinstance(step, Stop)) :]
    first = {
        kind: next(i for i, s in enumerate(tail) if isinstance(s, kind))
        for kind in (Stop, Multi, DeleteIfMine, Sync, Children, Start)
    }
    claims = [i for i, s in enumerate(tail) if isinstance(s, Create) and "/owners/" in s.path]
    assert list(first) == sorted(first, key=lambda kind: first[kind])
    assert first[Children] < min(claims) <= max(claims) < first[Start]
    assert all(s.watch for s in tail if isinstance(s, Children))


def test_the_figure_releases_while_it_still_reads(cluster: Cluster) -> None:
    """As printed, the owner node goes before the pulling thread stops: two members read one partition (§3.2)."""
    a = Driven(cluster, "a", edition=PRINTED)
    a.settle()
    cluster.topic("t", 6)
    cluster.zookeeper.deliver()
    a.until(lambda step: isinstance(step, Delete))

    assert a.reading, "still delivering what it no longer owns"


def test_a_change_that_leaves_our_share_alone_stops_nobody(cluster: Cluster) -> None:
    """A watch that fires without changing a member's share does not interrupt its delivery."""
    a = Driven(cluster, "a")
    a.settle()
    started = len(a.events(RebalanceStarted))
    a.session.suspend()
    a.session.resume()
    cluster.zookeeper.deliver()
    assert a.member.dirty
    a.settle()

    assert len(a.events(RebalanceStarted)) == started
    assert a.reading.keys() == everything()


def test_delivery_goes_on_while_the_registry_does_not_answer(cluster: Cluster) -> None:
    """A suspended session stops no delivery by itself: nothing is let go before the registry answers (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()
    a.session.suspend()
    cluster.zookeeper.deliver()
    for _ in range(50):
        a.step()
    assert a.reading.keys() == everything()

    a.session.resume()
    cluster.zookeeper.deliver()
    a.settle()
    assert a.reading.keys() == everything()


def test_another_member_in_the_way_is_waited_for_and_its_node_never_deleted(cluster: Cluster) -> None:
    """A claim that meets another owner releases what it got, waits and tries again, for ever (§3.2)."""
    stranger = cluster.zookeeper.session()
    elsewhere = Subscription.fixed({"another": 1}).encode()
    stranger.perform(Create(paths.consumer_id("g", "g_b"), elsewhere, ephemeral=True, make_parents=True))
    path = paths.owner("g", "t", part(2).partition)
    stranger.perform(Create(path, b"somebody", ephemeral=True, make_parents=True))
    a = Driven(cluster, "a")
    for _ in range(10):
        a.until(lambda step: isinstance(step, Wait))
        assert not a.reading
        assert cluster.value(path) == b"somebody"
        assert cluster.owner(part(0)) is None, "what it got is released"
    assert len(a.events(ClaimRefused)) >= 9

    stranger.close()
    a.settle()
    assert a.reading.keys() == everything()


def test_0_7_gives_up_after_four_tries(cluster: Cluster) -> None:
    """The shipped edition stops trying after four attempts and reads nothing until the next event.

    See docs/consumer.md.
    """
    cluster.zookeeper.session().perform(
        Create(paths.owner("g", "t", part(2).partition), b"somebody", ephemeral=True, make_parents=True)
    )
    a = Driven(cluster, "a", edition=SHIPPED)
    a.settle()

    assert len(a.events(ClaimRefused)) == 4
    assert a.events(GaveUp) and not a.reading


@pytest.mark.parametrize("applied", [True, False])
def test_a_claim_whose_answer_was_lost_is_not_leaked(cluster: Cluster, applied: bool) -> None:
    """The intent is noted before the claim: a node created without our knowing is released with the rest (§3.2)."""
    a = Driven(cluster, "a")
    a.until(lambda step: isinstance(step, Sync))
    a.until(lambda step: isinstance(step, Children) and step.path == paths.topic("t"))
    a.step()
    for attempt in range(SOUND.asks):
        a.session.lose_reply(applied=applied and attempt == 0)
        a.step()
    assert a.member.claims == {part(0)}
    a.until(lambda step: isinstance(step, DeleteIfMine))
    assert cluster.owner(part(0)) is None

    a.settle()
    assert a.reading.keys() == everything()


def test_our_own_node_is_recognised_by_its_session(cluster: Cluster) -> None:
    """An owner node of this very session is ours whatever its value says (KAFKA-1387)."""
    a = Driven(cluster, "a")
    a.session.perform(Create(paths.owner("g", "t", part(1).partition), b"old-value", ephemeral=True, make_parents=True))
    a.settle()
    assert a.reading.keys() == everything()


def test_a_lost_session_begins_a_new_life(cluster: Cluster) -> None:
    """After expiry everything is forgotten, a new consumer id registered and everything claimed again (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()
    a.session.expire()
    cluster.zookeeper.deliver()
    a.member.dirty = True
    a.settle()

    assert a.events(SessionLost)
    assert a.member.consumer_id == "g_a-2"
    assert a.reading.keys() == everything()
    assert {cluster.owner(o) for o in a.reading} == {"g_a-2-0"}


def test_a_zombies_commit_is_refused(cluster: Cluster) -> None:
    """A member whose session ended while it was away cannot move offsets behind its successor's back (§3.3)."""
    a = Driven(cluster, "a")
    a.settle()
    a.reading = dict.fromkeys(a.reading, 60)
    b = Driven(cluster, "b")
    # a sleeps past its session; its client library opens a new one before a itself notices.
    a.session.expire()
    a.session.suspend()
    a.session.resume()
    cluster.zookeeper.deliver()
    b.settle()
    b.reading = dict.fromkeys(b.reading, 100)
    b.member.closing = True
    with pytest.raises(StopIteration):
        b.until(lambda step: False)

    positions = dict.fromkeys((part(i) for i in range(4)), 60)
    commit = a.member.offsets.commit(positions, paths.consumer_id("g", "g_a-1"))
    a.life = commit  # type: ignore[assignment]
    a._answer = a._error = None
    with pytest.raises(Exception, match="no longer a member"):
        a.until(lambda step: False)
    assert {cluster.offset(part(i)) for i in range(4)} == {100}


def test_a_fenced_commit_starts_the_member_anew(cluster: Cluster) -> None:
    """A member that finds its own id gone at a commit stops, takes a new id and claims again (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()
    a.reading = dict.fromkeys(a.reading, 60)
    cluster.registry.perform(Delete(paths.consumer_id("g", "g_a-1")))
    a.member.dirty = False
    cluster.clock.advance(20)
    a.until(lambda step: isinstance(step, Stop))
    a.settle()

    assert a.events(CommitFenced) and a.member.consumer_id == "g_a-2"
    assert a.reading.keys() == everything()


def test_an_id_held_by_another_is_refused_by_name(cluster: Cluster) -> None:
    """A second consumer with the same id waits for an earlier life to go, then refuses naming the holder (§3.2)."""
    holder = cluster.zookeeper.session()
    holder.perform(Create(paths.consumer_id("g", "g_a-1"), b"x", ephemeral=True, make_parents=True))
    a = Driven(cluster, "a")
    with pytest.raises(ConsumerIdInUse, match=f"g_a-1.*{holder.session_id:#x}"):
        a.until(lambda step: False)


def test_an_earlier_life_of_the_same_id_is_waited_out(cluster: Cluster) -> None:
    """A consumer restarted before its old session died waits for the old node and then joins (KAFKA-992)."""
    old = cluster.zookeeper.session()
    old.perform(Create(paths.consumer_id("g", "g_a-1"), b"x", ephemeral=True, make_parents=True))
    a = Driven(cluster, "a")
    a.until(lambda step: isinstance(step, Wait))
    old.expire()
    a.settle()
    assert a.reading.keys() == everything()


@pytest.mark.parametrize("garbage", [b"", b"-5", b"abc", b"9223372036854775808", b"\xff\xfe"])
def test_a_garbage_offset_is_as_good_as_none_and_loud(cluster: Cluster, garbage: bytes) -> None:
    """An offset node without an offset is treated as missing, and an error event says so (§3.2)."""
    cluster.store_offset(part(1), garbage)
    cluster.store_offset(part(2), b"77")
    a = Driven(cluster, "a")
    a.settle()

    assert (a.reading[part(1)], a.reading[part(2)]) == (None, 77)
    assert len(a.events(OffsetUnreadable)) == 1
    a.reading[part(1)] = 5
    a.leave()
    assert cluster.offset(part(1)) == 5


def test_no_broker_then_one_then_growth(cluster: Cluster) -> None:
    """A topic that appears, grows or vanishes later is noticed through the watches (§3.2)."""
    a = Driven(cluster, "a", topics={"later": 1})
    a.settle()
    assert not a.reading

    cluster.topic("later", 1)
    settle_all(cluster, a)
    assert a.reading.keys() == {part(0, "later")}
    cluster.topic("later", 3)
    settle_all(cluster, a)
    assert len(a.reading) == 3
    cluster.registry.perform(Delete(paths.topic_on_broker("later", 0)))
    settle_all(cluster, a)
    assert not a.reading


def test_more_consumers_than_partitions_leaves_the_rest_idle_and_ready(cluster: Cluster) -> None:
    """Surplus members own nothing and take over when an owner leaves (§3.2)."""
    cluster.topic("one", 1)
    a, b = pair(cluster, topics={"one": 1})
    idle, owner = sorted((a, b), key=lambda member: len(member.reading))
    assert (len(idle.reading), len(owner.reading)) == (0, 1)
    owner.leave()
    settle_all(cluster, idle)
    assert len(idle.reading) == 1


def test_what_comes_back_untouched_goes_on_where_the_application_is(cluster: Cluster) -> None:
    """Without autocommit a rebalance does not take a member back to its last commit in partitions it keeps."""
    a = Driven(cluster, "a", autocommit_s=None)
    a.settle()
    a.reading = dict.fromkeys(a.reading, 500)
    cluster.topic("t", 5)
    settle_all(cluster, a)

    assert [a.reading[part(i)] for i in range(5)] == [500, 500, 500, 500, None]
    assert cluster.offset(part(0)) is None, "and nothing was committed"


def test_commits_hold_only_what_changed(cluster: Cluster) -> None:
    """An unchanged offset is not written again (KAFKA-987)."""
    a = Driven(cluster, "a")
    a.settle()
    a.reading = dict.fromkeys(a.reading, 7)
    cluster.clock.advance(20)
    a.until(lambda step: isinstance(step, Multi))
    a.settle()
    a.reading[part(3)] = 9
    cluster.clock.advance(20)
    commit = a.until(lambda step: isinstance(step, Multi))

    assert isinstance(commit, Multi)
    written = [op.path for op in commit.operations if "/offsets/" in op.path]
    assert written == [paths.offset("g", "t", part(3).partition)]


def test_sound_is_the_default() -> None:
    """The edition without known failures is the one users get."""
    assert SOUND.fenced and SOUND.intent_first and SOUND.stops_first and SOUND.only_mine and SOUND.tries is None
