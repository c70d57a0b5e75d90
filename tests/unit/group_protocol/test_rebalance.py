"""Sync, heartbeat, leave, and the timers that drive a rebalance."""

from __future__ import annotations

from consumers.group_protocol.coordinator.requests import LeaveGroup, LeavingMember, Protocol
from consumers.group_protocol.coordinator.results import LeaveGroupResult
from consumers.group_protocol.coordinator.settings import GroupSettings
from since2011.wire.error_codes import ErrorCode
from tests.unit.group_protocol.bench import Bench, MemoryLog

OTHER = (Protocol("range", b"other"),)


def completing(bench: Bench, *names: str) -> list[str]:
    """Members whose joins were answered and who owe a sync; the first leads."""
    tokens = [bench.send_join(version=3, client=name) for name in names]
    bench.settle()
    return [bench.joined(token).member for token in tokens]


def test_followers_wait_for_the_leaders_assignment() -> None:
    """A follower's sync is parked until the leader's arrives; a member left out gets nothing.

    See docs/group-protocol.md.
    """
    bench = Bench()
    leader, follower, forgotten = completing(bench, "a", "b", "c")
    waiting = [bench.sync(follower, 1), bench.sync(forgotten, 1)]
    assert all(bench.is_parked(token) for token in waiting)
    assert bench.synced(bench.sync(leader, 1, {leader: b"L", follower: b"F"})).assignment == b"L"
    assert [bench.synced(token).assignment for token in waiting] == [b"F", b""]
    assert bench.state == "Stable"
    assert bench.synced(bench.sync(follower, 1)).assignment == b"F"


def test_sync_is_refused_for_strangers_old_generations_and_other_protocols() -> None:
    """25, 22, 23, 27. See docs/group-protocol.md."""
    bench = Bench()
    assert bench.synced(bench.sync("x", 1)).error is ErrorCode.UNKNOWN_MEMBER_ID
    leader, follower = completing(bench, "a", "b")
    assert bench.synced(bench.sync("x", 1)).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.synced(bench.sync(follower, 0)).error is ErrorCode.ILLEGAL_GENERATION
    refused = bench.synced(bench.sync(follower, 1, protocol="roundrobin"))
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bench.send_join(leader, protocols=OTHER)
    assert bench.synced(bench.sync(follower, 1)).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_rebalance_during_completing_sends_waiting_followers_back() -> None:
    """Parked syncs are answered 27 and stored assignments are wiped. See docs/group-protocol.md."""
    bench = Bench()
    _, follower = completing(bench, "a", "b")
    waiting = bench.sync(follower, 1)
    bench.send_join(version=3)
    assert bench.synced(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_assignment_is_handed_out_only_when_it_is_durable() -> None:
    """Completing becomes Stable once the group record is on disk. See docs/group-protocol.md."""
    log = MemoryLog()
    bench = Bench(log=log)
    (leader,) = completing(bench, "a")
    log.deferred = True
    token = bench.sync(leader, 1, {leader: b"L"})
    again = bench.sync(leader, 1, {leader: b"something else"})
    assert bench.is_parked(token)
    assert bench.state == "CompletingRebalance"
    bench.flush()
    assert bench.synced(again).assignment == b"L"
    assert bench.state == "Stable"


def test_an_assignment_that_cannot_be_logged_begins_another_rebalance() -> None:
    """Everyone waiting is told 27. See docs/group-protocol.md."""
    log = MemoryLog()
    bench = Bench(log=log)
    leader, follower = completing(bench, "a", "b")
    waiting = bench.sync(follower, 1)
    log.full = True
    assert bench.synced(bench.sync(leader, 1, {})).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.synced(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.state == "PreparingRebalance"


def test_a_flush_of_an_earlier_generation_changes_nothing() -> None:
    """An assignment made durable after the next rebalance began is not handed out. See docs/group-protocol.md."""
    log = MemoryLog()
    bench = Bench(log=log)
    (leader,) = completing(bench, "a")
    log.deferred = True
    bench.sync(leader, 1, {leader: b"old"})
    bench.send_join(version=3)
    bench.flush()
    assert bench.state == "PreparingRebalance"


def test_heartbeats_learn_of_a_rebalance_only_while_it_prepares() -> None:
    """27 in Preparing, 0 in Completing and Stable. See docs/group-protocol.md."""
    bench = Bench()
    leader, follower = bench.stable("a", "b")
    assert bench.heartbeat(leader, 1) is ErrorCode.NONE
    tokens = [bench.send_join(leader)]
    assert bench.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    tokens.append(bench.send_join(follower))
    assert [bench.joined(token).generation for token in tokens] == [2, 2]
    assert bench.state == "CompletingRebalance"
    assert bench.heartbeat(follower, 2) is ErrorCode.NONE


def test_heartbeats_of_strangers_and_zombies_are_refused() -> None:
    """25 for an unknown group or member, 22 for another generation. See docs/group-protocol.md."""
    bench = Bench()
    assert bench.heartbeat("x", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    (member,) = bench.stable("a")
    assert bench.heartbeat("x", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(member, 0) is ErrorCode.ILLEGAL_GENERATION
    assert bench.heartbeat(member, 2) is ErrorCode.ILLEGAL_GENERATION
    assert bench.heartbeat("", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed_after_its_session() -> None:
    """The others are told by 27 and go on without it. See docs/group-protocol.md."""
    bench = Bench()
    leader, silent = bench.stable("a", "b")
    for _ in range(3):
        bench.pass_time(3)
        assert bench.heartbeat(leader, 1) is ErrorCode.NONE
    bench.pass_time(1)
    assert bench.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    result = bench.joined(bench.send_join(leader))
    assert (result.generation, [each.member for each in result.members]) == (2, [leader])
    assert bench.heartbeat(silent, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_parked_member_needs_no_heartbeat() -> None:
    """The session is not enforced while a join or a sync is parked, and starts anew with the answer.

    See docs/group-protocol.md.
    """
    bench = Bench()
    leader, follower = bench.stable("a", "b")
    token = bench.send_join(leader)
    for _ in range(4):
        bench.pass_time(5)
        assert bench.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.is_parked(token)
    bench.send_join(follower)
    assert bench.joined(token).generation == 2
    waiting = bench.sync(follower, 2)
    for _ in range(4):
        bench.pass_time(5)
        assert bench.heartbeat(leader, 2) is ErrorCode.NONE
    assert bench.is_parked(waiting)
    bench.sync(leader, 2, {})
    bench.pass_time(9.9)
    assert bench.heartbeat(follower, 2) is ErrorCode.NONE


def test_a_new_member_that_never_gets_an_answer_is_dropped() -> None:
    """After five minutes, even though it is parked. See docs/group-protocol.md."""
    bench = Bench(GroupSettings(initial_rebalance_delay_ms=1_000_000))
    token = bench.send_join(version=3, rebalance_ms=2_000_000)
    bench.pass_time(299)
    assert bench.is_parked(token)
    bench.pass_time(2)
    assert bench.joined(token).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_rebalance_deadline_leaves_the_absent_behind() -> None:
    """The slowest member's rebalance timeout bounds the join phase. See docs/group-protocol.md."""
    bench = Bench()
    leader, absent = bench.stable("a", "b")
    token = bench.send_join(leader)
    for _ in range(4):
        bench.pass_time(7)
        bench.heartbeat(absent, 1)
    assert bench.is_parked(token)
    bench.pass_time(2)
    assert [each.member for each in bench.joined(token).members] == [leader]


def test_the_leadership_moves_to_someone_present() -> None:
    """A leader that does not rejoin in time loses it. See docs/group-protocol.md."""
    bench = Bench()
    _, follower = bench.stable("a", "b")
    token = bench.send_join(follower, protocols=OTHER)
    bench.pass_time(31)
    assert bench.joined(token).leader == follower


def test_a_pending_id_holds_up_the_join_phase_until_it_is_forgotten() -> None:
    """An id handed out counts as someone about to join, for one session. See docs/group-protocol.md."""
    bench = Bench()
    (leader,) = bench.stable("a")
    bench.new_id()
    token = bench.send_join(leader)
    assert bench.is_parked(token)
    bench.pass_time(10)
    assert bench.joined(token).generation == 2


def test_whoever_never_syncs_is_removed() -> None:
    """The sync deadline is as long as the rebalance timeout. See docs/group-protocol.md."""
    bench = Bench()
    leader, silent = completing(bench, "a", "b")
    assert bench.synced(bench.sync(leader, 1, {})).error is ErrorCode.NONE
    for _ in range(5):
        bench.pass_time(5)
        assert bench.heartbeat(leader, 1) is ErrorCode.NONE
        assert bench.heartbeat(silent, 1) is ErrorCode.NONE
    bench.pass_time(5)
    assert bench.heartbeat(silent, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_silent_leader_does_not_hold_the_group_for_ever() -> None:
    """Its session or the sync deadline ends it, followers are told to rejoin. See docs/group-protocol.md."""
    bench = Bench()
    _, follower = completing(bench, "a", "b")
    waiting = bench.sync(follower, 1)
    bench.pass_time(10)
    assert bench.synced(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_first_generation_waits_for_a_quiet_moment() -> None:
    """The initial delay is prolonged while members arrive, up to the rebalance timeout. See docs/group-protocol.md."""
    bench = Bench(GroupSettings(initial_rebalance_delay_ms=3_000))
    first = bench.send_join(version=3, rebalance_ms=8_000)
    bench.pass_time(2)
    second = bench.send_join(version=3, rebalance_ms=8_000)
    bench.pass_time(1.5)
    assert bench.is_parked(first)  # 3 s passed, but someone had come: 3 s more
    third = bench.send_join(version=3, rebalance_ms=8_000)
    bench.pass_time(3)
    assert bench.is_parked(first)  # 6 s: once more, but only 2 s are left of 8
    bench.pass_time(1.6)
    assert {bench.joined(token).generation for token in (first, second, third)} == {1}


def test_without_newcomers_the_initial_delay_ends_after_one_round() -> None:
    """Wait D, nobody came: complete. See docs/group-protocol.md."""
    bench = Bench(GroupSettings(initial_rebalance_delay_ms=3_000))
    token = bench.send_join(version=3)
    bench.pass_time(2.9)
    assert bench.is_parked(token)
    bench.pass_time(0.2)
    assert bench.joined(token).generation == 1


def test_arrivals_alone_never_end_the_initial_phase() -> None:
    """Only the delay does, even when everyone known has joined. See docs/group-protocol.md."""
    bench = Bench(GroupSettings(initial_rebalance_delay_ms=3_000))
    tokens = [bench.send_join(version=3) for _ in range(3)]
    assert all(bench.is_parked(token) for token in tokens)


def test_leaving_begins_a_rebalance_at_once() -> None:
    """Stable becomes Preparing; the last one to leave empties the group. See docs/group-protocol.md."""
    bench = Bench()
    leader, follower = bench.stable("a", "b")
    assert bench.leave(leader).members[0].error is ErrorCode.NONE
    assert bench.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.joined(bench.send_join(follower)).leader == follower
    bench.leave(follower)
    assert bench.state == "Empty"


def test_leaving_in_the_join_phase_may_complete_it() -> None:
    """The one everybody waited for goes. See docs/group-protocol.md."""
    bench = Bench()
    leader, follower = bench.stable("a", "b")
    token = bench.send_join(leader)
    bench.leave(follower)
    assert bench.joined(token).generation == 2


def test_the_parked_join_of_a_leaver_is_answered() -> None:
    """25. See docs/group-protocol.md."""
    bench = Bench()
    leader, _ = bench.stable("a", "b")
    token = bench.send_join(leader)
    bench.leave(leader)
    assert bench.joined(token).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_several_leave_in_one_request_with_a_result_each() -> None:
    """One rebalance for all; strangers get 25, a pending id is dropped. See docs/group-protocol.md."""
    bench = Bench()
    first, second, stays = bench.stable("a", "b", "c")
    pending = bench.new_id()
    result = bench.leave(first, "stranger", pending, second)
    assert [each.error for each in result.members] == [0, ErrorCode.UNKNOWN_MEMBER_ID, 0, 0]
    assert bench.joined(bench.send_join(stays)).generation == 2


def test_giving_up_a_pending_id_disturbs_nobody() -> None:
    """A stable group stays stable. See docs/group-protocol.md."""
    bench = Bench()
    bench.stable("a")
    assert bench.leave(bench.new_id()).error is ErrorCode.NONE
    assert bench.state == "Stable"


def test_leaving_an_unknown_group() -> None:
    """25; versions 0-2 have one code only. See docs/group-protocol.md."""
    result = Bench().ask(LeaveGroup("g", (LeavingMember("x"),)), LeaveGroupResult)
    assert result.single_error is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_and_generation_survive_a_restart() -> None:
    """The group is Stable again, members go on without rejoining, zombies stay fenced. See docs/group-protocol.md."""
    bench = Bench()
    leader, follower = bench.stable("a", "b")
    after = bench.restarted()
    assert after.heartbeat(leader, 1) is ErrorCode.NONE
    assert after.heartbeat(follower, 0) is ErrorCode.ILLEGAL_GENERATION
    assert after.synced(after.sync(follower, 1)).assignment == follower.encode()
    after.pass_time(10)
    assert after.coordinator.groups()["g"].members == {}


def test_a_group_whose_log_is_unreadable_is_not_served() -> None:
    """15 rather than pretending that nothing was ever committed."""
    bench = Bench()
    bench.log.available = False
    assert bench.heartbeat("x", 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.joined(bench.send_join()).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.commit() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.synced(bench.sync("x", 1)).error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_coordinator_that_resigns_tells_whoever_waits() -> None:
    """16, and the group is forgotten here. See docs/group-protocol.md."""
    bench = Bench()
    leader, _ = bench.stable("a", "b")
    token = bench.send_join(leader)
    bench.keep(bench.coordinator.resign(lambda _group: False, bench.clock.monotonic()))
    assert bench.joined(token).error is ErrorCode.NOT_COORDINATOR
    assert bench.coordinator.groups() == {}
    bench.pass_time(1000)
