"""Committing, fetching, deleting and expiring offsets."""

from __future__ import annotations

from consumers.group_protocol.coordinator.requests import (
    DeleteGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetToCommit,
    Protocol,
)
from consumers.group_protocol.coordinator.results import (
    DeleteGroupsResult,
    OffsetCommitResult,
    OffsetDeleteResult,
    OffsetFetchResult,
)
from consumers.group_protocol.coordinator.settings import GroupSettings
from consumers.group_protocol.subscription import Subscription
from kafka2011.types import TopicPartition
from since2011.wire.error_codes import ErrorCode
from tests.unit.group_protocol.bench import Bench, MemoryLog

DAY_S = 24 * 3600
FOREVER_MS = (1 << 31) - 1
T0 = TopicPartition("t", 0)


def test_a_simple_consumer_commits_without_a_group() -> None:
    """Generation -1 makes an Empty group that only holds offsets. See docs/group-protocol.md."""
    bench = Bench()
    assert bench.commit(offset=42) is ErrorCode.NONE
    assert bench.committed() == 42
    assert bench.state == "Empty"


def test_a_generation_for_an_unknown_group_is_refused() -> None:
    """22 below version 9, 69 from there on. See docs/group-protocol.md."""
    bench = Bench()
    assert bench.commit("m", 3) is ErrorCode.ILLEGAL_GENERATION
    assert bench.commit("m", 3, version=9) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_commits_in_its_generation_only() -> None:
    """A zombie of an earlier generation is refused (22), a stranger too (25). See docs/group-protocol.md."""
    bench = Bench()
    leader, zombie = bench.stable("a", "b")
    assert bench.commit(zombie, 1, 10) is ErrorCode.NONE
    bench.pass_time(5)
    bench.heartbeat(leader, 1)
    bench.pass_time(5)
    bench.joined(bench.send_join(leader))
    assert bench.commit(zombie, 1, 5) is ErrorCode.UNKNOWN_MEMBER_ID
    bench.sync(leader, 2, {})
    assert bench.commit(leader, 1, 5) is ErrorCode.ILLEGAL_GENERATION
    assert bench.commit(leader, 2, 11) is ErrorCode.NONE
    assert bench.committed() == 11


def test_a_live_group_takes_no_commits_from_outside() -> None:
    """No member, no generation, group not Empty: 25. See docs/group-protocol.md."""
    bench = Bench()
    bench.stable("a")
    assert bench.commit() is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_join_phase_is_the_last_chance_to_commit() -> None:
    """Accepted in Preparing, 27 in Completing. See docs/group-protocol.md."""
    bench = Bench()
    leader, follower = bench.stable("a", "b")
    bench.send_join(leader)
    assert bench.commit(follower, 1) is ErrorCode.NONE
    bench.send_join(follower)
    assert bench.commit(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_is_a_sign_of_life() -> None:
    """It restarts the session. See docs/group-protocol.md."""
    bench = Bench()
    (member,) = bench.stable("a")
    for _ in range(4):
        bench.pass_time(9)
        assert bench.commit(member, 1) is ErrorCode.NONE


def test_each_partition_has_its_own_verdict() -> None:
    """12 for long metadata, 3 for what does not exist, the rest is kept. See docs/group-protocol.md."""
    bench = Bench()
    offsets = (
        OffsetToCommit("t", 0, 1, metadata="x" * 4097),
        OffsetToCommit("nowhere", 0, 1),
        OffsetToCommit("t", 4, 1),
        OffsetToCommit("t", 3, 9, metadata=None),
    )
    result = bench.ask(OffsetCommit("g", -1, "", offsets), OffsetCommitResult)
    assert [each.error for each in result.partitions] == [12, 3, 3, 0]
    assert bench.committed(3) == 9


def test_the_answer_waits_for_the_disk() -> None:
    """Not answered, and not visible, before the log was flushed. See docs/group-protocol.md."""
    log = MemoryLog()
    log.deferred = True
    bench = Bench(log=log)
    first, second = bench.send_commit(offset=1), bench.send_commit(offset=2)
    assert bench.is_parked(first)
    assert bench.committed() == -1
    bench.flush(upto=1)
    assert bench.answer(first, OffsetCommitResult).partitions[0].error is ErrorCode.NONE
    assert bench.is_parked(second)
    assert bench.committed() == 1
    bench.flush()
    assert bench.committed() == 2


def test_a_log_that_takes_nothing_is_told() -> None:
    """15, retriable; the old offset stands. See docs/group-protocol.md."""
    bench = Bench()
    bench.commit(offset=1)
    bench.log.full = True
    assert bench.commit(offset=2) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.committed() == 1


def test_a_failed_flush_answers_everyone_who_waits() -> None:
    """15 to each. See docs/group-protocol.md."""
    bench = Bench()
    bench.log.deferred = True
    tokens = [bench.send_commit(offset=n) for n in range(3)]
    bench.keep(bench.coordinator.flush_failed(0, bench.clock.monotonic()))
    errors = {bench.answer(token, OffsetCommitResult).partitions[0].error for token in tokens}
    assert errors == {ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_fetching_what_was_never_committed() -> None:
    """-1 without an error; a null list means everything there is. See docs/group-protocol.md."""
    bench = Bench()
    assert bench.committed() == -1
    bench.commit(offset=5, partition=2)
    result = bench.ask(OffsetFetch("g"), OffsetFetchResult)
    assert [(each.topic, each.partition, each.offset) for each in result.offsets] == [("t", 2, 5)]
    assert bench.ask(OffsetFetch("nobody"), OffsetFetchResult).offsets == ()


def test_offsets_survive_a_restart() -> None:
    """Rebuilt from the log. See docs/group-protocol.md."""
    bench = Bench()
    bench.commit(offset=5)
    assert bench.restarted().committed() == 5


def test_offsets_of_a_simple_group_age_from_the_last_commit() -> None:
    """Seven days by default; the empty group goes with them. See docs/group-protocol.md."""
    bench = Bench()
    bench.commit(offset=5)
    bench.pass_time(6 * DAY_S)
    bench.commit(offset=6, partition=1)
    bench.pass_time(1.1 * DAY_S)
    assert (bench.committed(0), bench.committed(1)) == (-1, 6)
    bench.pass_time(6 * DAY_S)
    assert bench.coordinator.groups() == {}
    assert bench.restarted().coordinator.groups() == {}


def test_offsets_of_a_group_age_from_the_moment_it_became_empty() -> None:
    """A living group keeps its offsets however old they are. See docs/group-protocol.md."""
    settings = GroupSettings(initial_rebalance_delay_ms=0, max_session_ms=FOREVER_MS)
    bench = Bench(settings)
    metadata = (Protocol("range", Subscription(("t",)).encode()),)
    (member,) = bench.stable("a", session_ms=FOREVER_MS, protocols=metadata)
    bench.commit(member, 1, 5)
    bench.pass_time(20 * DAY_S)
    assert bench.committed() == 5
    bench.leave(member)
    bench.pass_time(6.9 * DAY_S)
    assert bench.committed() == 5
    bench.pass_time(0.2 * DAY_S)
    assert bench.coordinator.groups() == {}


def test_a_stable_group_forgets_topics_it_no_longer_reads() -> None:
    """Counted from the last commit. See docs/group-protocol.md."""
    settings = GroupSettings(initial_rebalance_delay_ms=0, max_session_ms=FOREVER_MS)
    bench = Bench(settings)
    bench.commit(offset=5)
    metadata = (Protocol("range", Subscription(("u",)).encode()),)
    bench.stable("a", session_ms=FOREVER_MS, protocols=metadata)
    bench.pass_time(7.1 * DAY_S)
    assert bench.committed() == -1


def test_offsets_are_deleted_one_by_one() -> None:
    """86 for a topic that is being read, 69 for an unknown group."""
    bench = Bench()
    request = OffsetDelete("g", (T0,))
    assert bench.ask(request, OffsetDeleteResult).error is ErrorCode.GROUP_ID_NOT_FOUND
    bench.commit(offset=5)
    assert bench.ask(request, OffsetDeleteResult).partitions[0].error is ErrorCode.NONE
    assert bench.committed() == -1
    assert bench.restarted().committed() == -1
    bench.stable("a", protocols=(Protocol("range", Subscription(("t",)).encode()),))
    assert bench.ask(request, OffsetDeleteResult).partitions[0].error is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_deleting_a_group_takes_its_offsets_along() -> None:
    """68 while someone is in it, 69 when there is none; durable before the answer. See docs/group-protocol.md."""
    bench = Bench()
    (member,) = bench.stable("a")
    bench.commit(member, 1, 5)
    delete = DeleteGroups(("g", "other", ""))
    errors = [each.error for each in bench.ask(delete, DeleteGroupsResult).groups]
    assert errors == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID]
    bench.leave(member)
    bench.log.deferred = True
    token = bench.send(DeleteGroups(("g",)))
    assert bench.is_parked(token)
    bench.flush()
    assert bench.answer(token, DeleteGroupsResult).groups[0].error is ErrorCode.NONE
    assert bench.committed() == -1
    assert bench.log.live() == []


def test_a_commit_under_way_does_not_outlive_the_group() -> None:
    """What was appended but not flushed when the group was deleted is gone as well."""
    bench = Bench()
    bench.log.deferred = True
    bench.send_commit(offset=5)
    bench.send(DeleteGroups(("g",)))
    bench.flush()
    assert bench.committed() == -1
    assert bench.log.live() == []
