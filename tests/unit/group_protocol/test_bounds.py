"""What strangers can make the coordinator keep: little, counted, and only what was accepted (issue 19 B4, issue 20 C3).

Every test on the bench checks after every step that what is counted is what is kept; here are the limits.
"""

from __future__ import annotations

from consumers.group_protocol.coordinator.requests import (
    ConsumerGroupHeartbeat,
    OffsetCommit,
    OffsetToCommit,
    Protocol,
)
from consumers.group_protocol.coordinator.results import (
    ConsumerGroupHeartbeatResult,
    JoinGroupResult,
    OffsetCommitResult,
)
from consumers.group_protocol.coordinator.settings import GroupSettings
from since2011.wire.error_codes import ErrorCode
from tests.unit.group_protocol.bench import Bench

TIGHT = GroupSettings(
    initial_rebalance_delay_ms=0, max_metadata_size=10_000, max_group_bytes=30_000, max_groups_bytes=100_000
)
LARGE = (Protocol("range", b"x" * 9_900),)


def errors_of(bench: Bench, *tokens: int) -> list[ErrorCode | None]:
    """What each was told; None for those who wait."""
    return [None if bench.is_parked(token) else bench.answer(token, JoinGroupResult).error for token in tokens]


def test_members_whose_connections_are_gone_leave_nothing() -> None:
    """1,200 joins with a megabyte each and closed connections kept 1.2 GiB. Whoever was never answered goes with its
    connection, and a group of which there was nothing else with it."""
    bench = Bench()
    for n in range(1_200):
        token = bench.send_join(group=f"g{n}", version=3, protocols=(Protocol("range", b"x" * 200_000),))
        bench.drop(token)
    assert bench.coordinator.groups() == {}
    assert bench.log.records == {}
    assert bench.coordinator.next_deadline() == bench.clock.monotonic() + 600, "no timer is left but the one of expiry"


def test_a_newcomer_that_leaves_in_the_middle_holds_up_nobody() -> None:
    """The others' join phase goes on as if it had not come; when it comes back it is told 25, and joins anew."""
    bench = Bench()
    leader, follower = bench.stable("a", "b")
    newcomer = bench.new_id(client="n")
    waiting = bench.send_join(newcomer)
    first = bench.send_join(leader)
    bench.drop(waiting)
    assert bench.is_parked(first), "one more is to come"
    bench.joined(bench.send_join(follower))
    assert {each.member for each in bench.joined(first).members} == {leader, follower}
    assert bench.joined(bench.send_join(newcomer)).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_one_group_has_a_limit_of_bytes() -> None:
    """Three of 10,000 do not fit beside the group itself into 30,000: 81; a small one still does."""
    bench = Bench(TIGHT)
    tokens = [bench.send_join(version=3, protocols=LARGE, client=f"c{n}") for n in range(3)]
    assert errors_of(bench, *tokens)[2:] == [ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert errors_of(bench, bench.send_join(version=3, client="small"))[0] is not ErrorCode.GROUP_MAX_SIZE_REACHED


def test_the_broker_has_a_limit_of_bytes() -> None:
    """Large ones are told to come back later when three quarters are used; small ones have the rest."""
    bench = Bench(TIGHT)
    tokens = [bench.send_join(group=f"g{n}", version=3, protocols=LARGE) for n in range(12)]
    told = errors_of(bench, *tokens)
    assert set(told[6:]) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert ErrorCode.COORDINATOR_NOT_AVAILABLE not in told[:5]
    assert errors_of(bench, bench.send_join(group="small", version=3))[0] is not ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.coordinator._replies.holdings.total <= 100_000
    assert len(bench.coordinator.groups()) <= 7, "who was refused left no group behind"


def test_a_member_that_comes_back_is_not_counted_twice() -> None:
    """At the limit those who are in may join again and again."""
    bench = Bench(TIGHT)
    first = bench.send_join(version=3, protocols=LARGE)
    bench.settle()
    member = bench.joined(first).member
    for _ in range(5):
        again = bench.send_join(member, version=3, protocols=(Protocol("range", b"y" * 9_900),))
        assert errors_of(bench, again)[0] in (None, ErrorCode.NONE)


def test_ids_handed_out_are_members_too() -> None:
    """Asking for an id and never joining with it fills the group like a member, not memory."""
    bench = Bench(GroupSettings(max_group_size=3))
    for _ in range(3):
        bench.new_id()
    assert bench.joined(bench.send_join()).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    bench.pass_time(11)
    assert bench.coordinator.groups() == {}, "nothing was ever written of it"


def test_names_are_bounded() -> None:
    """255 bytes for a group; 249 for an instance, as in Kafka."""
    bench = Bench()
    for name in ("x" * 30_000, "x" * 256, "ü" * 128):
        assert bench.joined(bench.send_join(group=name)).error is ErrorCode.INVALID_GROUP_ID
        commit = bench.ask(OffsetCommit(name, -1, "", (OffsetToCommit("t", 0, 1),)), OffsetCommitResult)
        assert commit.partitions[0].error is ErrorCode.INVALID_GROUP_ID
        request = ConsumerGroupHeartbeat(name, "m", 0, rebalance_ms=1, topics=("t",), owned=())
        assert bench.ask(request, ConsumerGroupHeartbeatResult).error is ErrorCode.INVALID_GROUP_ID
    assert bench.joined(bench.send_join(instance="i" * 250)).error is ErrorCode.INVALID_REQUEST
    assert bench.joined(bench.send_join(protocol_type="p" * 256)).error is ErrorCode.INVALID_REQUEST
    assert bench.coordinator.groups() == {}
    assert errors_of(bench, bench.send_join(group="x" * 255)) == [ErrorCode.MEMBER_ID_REQUIRED]


def test_what_is_refused_leaves_no_group() -> None:
    """1,000 refused commits left 1,000 groups (issue 20 C3); so did refused joins and heartbeats."""
    bench = Bench()
    for n in range(1_000):
        too_long = OffsetToCommit("t", 0, 1, 0, "x" * 5_000)
        offsets = (OffsetToCommit("nowhere", 0, 1), OffsetToCommit("t", 99, 1), too_long)
        told = bench.ask(OffsetCommit(f"commit-{n}", -1, "", offsets), OffsetCommitResult)
        assert all(each.error for each in told.partitions)
    assert bench.joined(bench.send_join(group="join", protocols=())).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.consumer("m", instance="").error is ErrorCode.INVALID_REQUEST
    assert bench.coordinator.groups() == {}
    mixed = (OffsetToCommit("nowhere", 0, 1), OffsetToCommit("t", 0, 1))
    bench.ask(OffsetCommit("one of two", -1, "", mixed), OffsetCommitResult)
    assert list(bench.coordinator.groups()) == ["one of two"]


def test_a_refused_change_of_kind_changes_nothing() -> None:
    """An empty group of one kind is not ended by a request of the other kind that is refused."""
    bench = Bench(TIGHT)
    epoch = bench.consumer("m").epoch
    assert bench.consumer("m", -1).error is ErrorCode.NONE
    assert epoch == 1
    assert bench.joined(bench.send_join(protocols=())).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.coordinator.groups()["g"].kind == "consumer"
    assert bench.new_id()
    assert bench.coordinator.groups()["g"].kind == "classic"


def test_a_consumer_of_the_new_protocol_has_the_same_limits() -> None:
    """Its topics are its subscription: too many for it 42, for the group 81; the group is not made for it."""
    bench = Bench(TIGHT)
    topics = tuple(f"{n:0100d}" for n in range(101))
    refused = bench.consumer("m", topics=topics)
    assert (refused.error, bench.coordinator.groups()) == (ErrorCode.INVALID_REQUEST, {})
    told = [bench.consumer(f"m{n}", topics=topics[:99]).error for n in range(4)]
    assert told == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_committed_offsets_are_bounded() -> None:
    """Beyond the limit a commit is refused by name (28, the size of what is committed); one that replaces another of
    the same size is taken."""
    bench = Bench(GroupSettings(max_offsets_bytes=10_000))

    def commit(group: str, note: str) -> ErrorCode:
        offsets = (OffsetToCommit("t", 0, 1, 0, note),)
        return bench.ask(OffsetCommit(group, -1, "", offsets), OffsetCommitResult).partitions[0].error

    told = [commit(f"g{n}", "n" * 1_000) for n in range(5)]
    assert told == [ErrorCode.NONE] * 3 + [ErrorCode.INVALID_COMMIT_OFFSET_SIZE] * 2
    assert commit("g0", "m" * 1_000) is ErrorCode.NONE
    assert list(bench.coordinator.groups()) == ["g0", "g1", "g2"]


def test_a_leaders_assignment_is_bounded() -> None:
    """It is kept for every member and written to the log."""
    bench = Bench(TIGHT)
    first = bench.send_join(version=3)
    bench.settle()
    member = bench.joined(first).member
    assert bench.synced(bench.sync(member, 1, {member: b"x" * 15_001})).error is ErrorCode.INVALID_REQUEST
    assert bench.synced(bench.sync(member, 1, {member: b"x" * 100})).error is ErrorCode.NONE
