"""Static members: a restart is not a rebalance (KIP-345)."""

from __future__ import annotations

from consumers.group_protocol.coordinator.requests import LeaveGroup, LeavingMember, Protocol
from consumers.group_protocol.coordinator.results import JoinGroupResult, LeaveGroupResult
from since2011.wire.error_codes import ErrorCode
from tests.unit.group_protocol.bench import Bench, MemoryLog


def pair(bench: Bench) -> tuple[str, str]:
    """A stable group of the static members i1 (leader) and i2."""
    tokens = [bench.send_join(instance=name) for name in ("i1", "i2")]
    bench.settle()
    first, second = (bench.joined(token) for token in tokens)
    waiting = bench.sync(second.member, 1, instance="i2")
    bench.sync(first.member, 1, {first.member: b"1", second.member: b"2"}, instance="i1")
    assert bench.synced(waiting).assignment == b"2"
    return first.member, second.member


def test_a_static_member_skips_the_handshake() -> None:
    """Its id begins with the instance id. See docs/group-protocol.md."""
    assert pair(Bench()) == ("i1-001", "i2-002")


def test_a_restarted_follower_gets_its_old_share_and_nobody_notices() -> None:
    """New id, same generation, no rebalance, old assignment. See docs/group-protocol.md."""
    bench = Bench()
    leader, _ = pair(bench)
    back = bench.joined(bench.send_join(instance="i2"))
    assert (back.error, back.generation, back.leader, back.members) == (ErrorCode.NONE, 1, leader, ())
    assert bench.state == "Stable"
    assert bench.synced(bench.sync(back.member, 1, instance="i2")).assignment == b"2"
    assert bench.heartbeat(leader, 1, "i1") is ErrorCode.NONE


def test_a_restarted_leader_is_not_asked_to_assign_again() -> None:
    """Below version 9 the answer names its old id as leader, so that it does not wipe the group.

    See docs/group-protocol.md.
    """
    bench = Bench()
    leader, _ = pair(bench)
    back = bench.joined(bench.send_join(instance="i1"))
    assert back.leader == leader != back.member
    assert back.members == ()
    assert bench.coordinator.groups()["g"].leader == back.member  # type: ignore[union-attr]


def test_of_two_with_one_instance_id_the_older_is_fenced() -> None:
    """82 on whatever it does next; the instance id is checked before the member id. See docs/group-protocol.md."""
    bench = Bench()
    _, old = pair(bench)
    new = bench.joined(bench.send_join(instance="i2")).member
    assert bench.heartbeat(old, 1, "i2") is ErrorCode.FENCED_INSTANCE_ID
    assert bench.synced(bench.sync(old, 1, instance="i2")).error is ErrorCode.FENCED_INSTANCE_ID
    assert bench.commit(old, 1, instance="i2") is ErrorCode.FENCED_INSTANCE_ID
    assert bench.joined(bench.send_join(old, instance="i2")).error is ErrorCode.FENCED_INSTANCE_ID
    assert bench.heartbeat(new, 1, "i2") is ErrorCode.NONE
    assert bench.heartbeat(new, 1, "i9") is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_parked_request_of_the_former_self_is_fenced() -> None:
    """A restart in the join phase parks anew and answers the old 82. See docs/group-protocol.md."""
    bench = Bench()
    leader, follower = pair(bench)
    old = bench.send_join(leader, instance="i1")
    new = bench.send_join(instance="i1")
    assert bench.joined(old).error is ErrorCode.FENCED_INSTANCE_ID
    bench.send_join(follower, instance="i2")
    assert bench.joined(new).generation == 2


def test_a_restart_while_completing_begins_a_rebalance() -> None:
    """The leader may already have assigned to the old id. See docs/group-protocol.md."""
    bench = Bench()
    tokens = [bench.send_join(instance=name) for name in ("i1", "i2")]
    bench.settle()
    for token in tokens:
        bench.joined(token)
    assert bench.is_parked(bench.send_join(instance="i2"))
    assert bench.state == "PreparingRebalance"


def test_a_restart_that_changes_the_vote_begins_a_rebalance() -> None:
    """See docs/group-protocol.md."""
    bench = Bench()
    protocols = (Protocol("range", b""), Protocol("roundrobin", b""))
    token = bench.send_join(instance="i1", protocols=protocols)
    bench.settle()
    member = bench.joined(token).member
    bench.sync(member, 1, {}, instance="i1")
    assert bench.is_parked(bench.send_join(instance="i1", protocols=tuple(reversed(protocols)))) is False
    assert bench.state == "CompletingRebalance"


def test_an_absent_static_member_is_counted_in() -> None:
    """At the rebalance deadline it is kept; its session decides. See docs/group-protocol.md."""
    bench = Bench()
    tokens = [bench.send_join(instance=name, session_ms=60_000) for name in ("i1", "i2")]
    bench.settle()
    leader, follower = (bench.joined(token).member for token in tokens)
    waiting = bench.sync(follower, 1, instance="i2")
    bench.sync(leader, 1, {}, instance="i1")
    bench.synced(waiting)
    token = bench.send_join(leader, instance="i1", session_ms=60_000)
    bench.pass_time(31)
    assert {each.instance for each in bench.joined(token).members} == {"i1", "i2"}


def test_only_absent_static_members_keep_the_join_phase_open() -> None:
    """Nobody is parked at the deadline: it is armed again. See docs/group-protocol.md."""
    bench = Bench()
    tokens = [bench.send_join(instance=name, session_ms=1_000_000) for name in ("i1", "i2")]
    bench.settle()
    leader, follower = (bench.joined(token).member for token in tokens)
    waiting = bench.sync(follower, 1, instance="i2")
    bench.sync(leader, 1, {}, instance="i1")
    bench.synced(waiting)
    dynamic = bench.send_join(version=3)
    bench.drop(dynamic)
    bench.pass_time(100)
    assert bench.state == "PreparingRebalance"
    assert set(bench.coordinator.groups()["g"].members) == {leader, follower}


def test_a_dead_static_member_is_removed_after_its_session() -> None:
    """Absent too long is gone. See docs/group-protocol.md."""
    bench = Bench()
    leader, _ = pair(bench)
    for _ in range(2):
        bench.pass_time(5)
        bench.heartbeat(leader, 1, "i1")
    assert bench.heartbeat(leader, 1, "i1") is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_administrator_removes_by_instance_id() -> None:
    """LeaveGroup with an empty member id. See docs/group-protocol.md."""
    bench = Bench()
    pair(bench)
    request = LeaveGroup("g", (LeavingMember("", "i2"), LeavingMember("", "i9")))
    errors = [each.error for each in bench.ask(request, LeaveGroupResult).members]
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_swap_that_cannot_be_logged_is_undone() -> None:
    """The old id stays valid. See docs/group-protocol.md."""
    log = MemoryLog()
    bench = Bench(log=log)
    _, follower = pair(bench)
    log.full = True
    token = bench.send_join(instance="i2")
    assert bench.answer(token, JoinGroupResult).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.heartbeat(follower, 1, "i2") is ErrorCode.NONE


def test_static_members_survive_a_restart_of_the_coordinator() -> None:
    """The swap was logged: after a restart the new id is the valid one. See docs/group-protocol.md."""
    bench = Bench()
    _, old = pair(bench)
    new = bench.joined(bench.send_join(instance="i2")).member
    after = bench.restarted()
    assert after.heartbeat(new, 1, "i2") is ErrorCode.NONE
    assert after.heartbeat(old, 1, "i2") is ErrorCode.FENCED_INSTANCE_ID
