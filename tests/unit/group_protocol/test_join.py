"""JoinGroup, rule by rule."""

from __future__ import annotations

import pytest

from consumers.group_protocol.coordinator.requests import OffsetCommit, Protocol
from consumers.group_protocol.coordinator.results import JoinGroupResult
from consumers.group_protocol.coordinator.settings import GroupSettings
from since2011.wire.error_codes import ErrorCode
from tests.unit.group_protocol.bench import RANGE, Bench

BOTH = (Protocol("range", b"r"), Protocol("roundrobin", b"rr"))
ROUND = (Protocol("roundrobin", b"rr"),)


def test_a_new_member_gets_an_id_first_and_joins_with_it() -> None:
    """A dynamic member from version 4 on is told its id before it becomes a member. See docs/group-protocol.md."""
    bench = Bench()
    member = bench.new_id(client="app")
    assert member == "app-001"
    assert bench.state == "Empty"
    token = bench.send_join(member)
    bench.settle()
    result = bench.joined(token)
    assert (result.error, result.generation, result.leader, result.member) == (ErrorCode.NONE, 1, member, member)


def test_an_old_client_gets_its_id_with_the_answer() -> None:
    """Below version 4 there is no handshake. See docs/group-protocol.md."""
    bench = Bench()
    token = bench.send_join(version=3)
    bench.settle()
    assert bench.joined(token).member == "c-001"


@pytest.mark.parametrize("session_ms", [0, 5_999, 1_800_001])
def test_session_timeout_outside_the_bounds_is_refused(session_ms: int) -> None:
    """Rule 1 of joining: 26. See docs/group-protocol.md."""
    bench = Bench()
    assert bench.joined(bench.send_join(session_ms=session_ms)).error is ErrorCode.INVALID_SESSION_TIMEOUT


def test_an_id_for_an_unknown_group_is_refused() -> None:
    """Rule 2 of joining: 25, and no group comes into being. See docs/group-protocol.md."""
    bench = Bench()
    assert bench.joined(bench.send_join("ghost")).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.coordinator.groups() == {}


def test_an_empty_group_name_is_refused() -> None:
    """Common rule: 24. See docs/group-protocol.md."""
    bench = Bench()
    assert bench.joined(bench.send_join(group="")).error is ErrorCode.INVALID_GROUP_ID


def test_a_full_group_takes_no_more_but_keeps_its_own() -> None:
    """Rule 3 of joining: 81 for newcomers, a member may always rejoin. See docs/group-protocol.md."""
    bench = Bench(GroupSettings(initial_rebalance_delay_ms=0, max_group_size=1))
    (leader,) = bench.stable("a")
    assert bench.joined(bench.send_join()).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    token = bench.send_join(leader)
    bench.settle()
    assert bench.joined(token).error is ErrorCode.NONE


def test_a_group_of_another_type_or_without_a_shared_protocol_refuses() -> None:
    """Rule 5 of joining: 23. See docs/group-protocol.md."""
    bench = Bench()
    bench.stable("a")
    for how in ({"protocol_type": "connect"}, {"protocols": ROUND}, {"protocols": ()}):
        assert bench.joined(bench.send_join(**how)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[arg-type]
    assert bench.joined(bench.send_join(group="new", protocol_type="")).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_unknown_member_id_is_refused() -> None:
    """Rule 10 of joining: 25. See docs/group-protocol.md."""
    bench = Bench()
    bench.stable("a")
    assert bench.joined(bench.send_join("nobody")).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pending_id_with_an_instance_id_is_a_protocol_error() -> None:
    """Rule 9 of joining. See docs/group-protocol.md."""
    bench = Bench()
    member = bench.new_id()
    assert bench.joined(bench.send_join(member, instance="i")).error is ErrorCode.INVALID_REQUEST


def test_too_much_metadata_is_refused() -> None:
    """One member may not bring more subscription bytes than the limit."""
    bench = Bench(GroupSettings(max_metadata_size=10))
    assert bench.joined(bench.send_join(protocols=(Protocol("range", b"x" * 11),))).error is ErrorCode.INVALID_REQUEST


def test_there_is_a_limit_on_groups() -> None:
    """Beyond it newcomers are told to come back later; groups there are go on."""
    bench = Bench(GroupSettings(max_groups=1, initial_rebalance_delay_ms=0))
    bench.new_id()
    assert bench.joined(bench.send_join(group="other")).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    result = bench.answers[bench.send(OffsetCommit("third", -1, "", ()))]
    assert result.partitions == ()  # type: ignore[union-attr]
    assert list(bench.coordinator.groups()) == ["g"]


def test_only_the_leader_is_told_the_members() -> None:
    """The member list goes to the leader, an empty one to the others. See docs/group-protocol.md."""
    bench = Bench()
    tokens = [bench.send_join(version=3, client=name) for name in "ab"]
    bench.settle()
    first, second = (bench.joined(token) for token in tokens)
    assert [each.member for each in first.members] == ["a-001", "b-002"]
    assert first.members[0].metadata == b"wants t"
    assert second.members == ()
    assert first.leader == second.leader == "a-001"


def test_the_protocol_most_members_prefer_wins_among_those_all_have() -> None:
    """Each votes for the first candidate in its own list. See docs/group-protocol.md."""
    bench = Bench()
    lists = [BOTH, tuple(reversed(BOTH)), (Protocol("sticky", b"s"), *reversed(BOTH))]
    tokens = [bench.send_join(version=3, protocols=each) for each in lists]
    bench.settle()
    assert {bench.joined(token).protocol for token in tokens} == {"roundrobin"}


def test_a_lost_answer_is_repeated_in_completing() -> None:
    """An unchanged rejoin while assignments are awaited is answered at once. See docs/group-protocol.md."""
    bench = Bench()
    member = bench.new_id()
    token = bench.send_join(member)
    bench.settle()
    first = bench.joined(token)
    assert bench.joined(bench.send_join(member)) == first
    assert bench.state == "CompletingRebalance"


def test_a_follower_that_rejoins_unchanged_disturbs_nobody() -> None:
    """In Stable it is answered at once with the current generation and no list. See docs/group-protocol.md."""
    bench = Bench()
    _, follower = bench.stable("a", "b")
    result = bench.joined(bench.send_join(follower))
    assert (result.error, result.generation, result.members) == (ErrorCode.NONE, 1, ())
    assert bench.state == "Stable"


def test_a_leader_that_rejoins_begins_a_rebalance() -> None:
    """This is how a leader reacts to new partitions. See docs/group-protocol.md."""
    bench = Bench()
    leader, _ = bench.stable("a", "b")
    assert bench.is_parked(bench.send_join(leader))
    assert bench.state == "PreparingRebalance"


def test_changed_metadata_begins_a_rebalance() -> None:
    """A follower that wants something else parks and everyone is told 27. See docs/group-protocol.md."""
    bench = Bench()
    leader, follower = bench.stable("a", "b")
    assert bench.is_parked(bench.send_join(follower, protocols=(Protocol("range", b"other"),)))
    assert bench.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_of_two_parked_joins_of_one_member_the_newest_is_answered() -> None:
    """A member may send again on a new connection; the older request gets no answer. See docs/group-protocol.md."""
    bench = Bench()
    leader, _ = bench.stable("a", "b")
    old, new = bench.send_join(leader), bench.send_join(leader)
    bench.pass_time(31)
    assert bench.is_parked(old)
    assert bench.joined(new).error is ErrorCode.NONE


def test_a_dropped_connection_does_not_remove_the_member() -> None:
    """Only timers remove a classic member. See docs/group-protocol.md."""
    bench = Bench()
    leader, follower = bench.stable("a", "b")
    token = bench.send_join(leader)
    bench.drop(token)
    other = bench.send_join(follower)
    assert bench.is_parked(token)
    result = bench.joined(other)
    assert (result.generation, result.leader) == (2, leader)


def test_the_leader_of_an_emptied_group_is_the_next_to_come() -> None:
    """Generation goes on where it was, so that zombies stay fenced. See docs/group-protocol.md."""
    bench = Bench()
    (only,) = bench.stable("a")
    bench.leave(only)
    assert bench.state == "Empty"
    assert bench.coordinator.groups()["g"].generation == 2  # type: ignore[union-attr]
    (newcomer,) = bench.stable("b")
    assert bench.heartbeat(newcomer, 3) is ErrorCode.NONE


def test_a_join_result_names_the_protocol_type() -> None:
    """Fixed by the first member. See docs/group-protocol.md."""
    bench = Bench()
    token = bench.send_join(version=0, protocols=RANGE)
    bench.settle()
    assert bench.answer(token, JoinGroupResult).protocol_type == "consumer"
