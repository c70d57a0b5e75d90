"""KIP-848: epochs, targets, revocation before assignment."""

from __future__ import annotations

import pytest

from consumers.group_protocol.coordinator.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupHeartbeat,
    OffsetFetch,
)
from consumers.group_protocol.coordinator.results import (
    ConsumerGroupDescribeResult,
    ConsumerGroupHeartbeatResult,
    OffsetFetchResult,
)
from consumers.group_protocol.coordinator.settings import GroupSettings
from kafka2011.types import TopicPartition
from since2011.wire.error_codes import ErrorCode
from tests.unit.group_protocol.bench import Bench


def parts(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", number) for number in numbers)


def joined(bench: Bench, member: str = "A", **how: object) -> ConsumerGroupHeartbeatResult:
    """Join and acknowledge what was given."""
    result = bench.consumer(member, **how)
    assert result.error is ErrorCode.NONE
    return bench.consumer(member, result.epoch, owned=result.assignment)


def test_the_first_member_gets_everything() -> None:
    """Epoch 1, the whole topic, the server's heartbeat interval. See docs/group-protocol.md."""
    bench = Bench()
    result = bench.consumer("A")
    assert (result.epoch, result.assignment, result.heartbeat_ms) == (1, parts(0, 1, 2, 3), 5_000)
    acknowledged = bench.consumer("A", 1, owned=parts(0, 1, 2, 3))
    assert (acknowledged.epoch, acknowledged.assignment) == (1, None)
    assert bench.state == "Stable"


def test_a_partition_is_given_only_after_its_holder_let_go() -> None:
    """The observed hand-over of docs/group-protocol.md, step by step: learn, acknowledge, receive."""
    bench = Bench()
    joined(bench, "A")
    newcomer = bench.consumer("B")
    assert (newcomer.epoch, newcomer.assignment) == (2, ())
    assert bench.state == "Reconciling"
    told = bench.consumer("A", 1)
    assert (told.epoch, told.assignment) == (1, parts(0, 1))
    assert bench.consumer("B", 2).assignment is None
    assert bench.consumer("A", 1, owned=parts(0, 1, 2)).epoch == 1  # still holds one of them
    assert bench.consumer("A", 1, owned=parts(0, 1)).epoch == 2
    given = bench.consumer("B", 2)
    assert given.assignment == parts(2, 3)
    assert bench.state == "Stable"


def test_members_not_concerned_never_stop() -> None:
    """A third member takes from one; the other is told nothing but its new epoch. See docs/group-protocol.md."""
    bench = Bench()
    bench.topics["t"] = 5
    joined(bench, "A")
    bench.consumer("B")
    bench.consumer("A", 1)
    bench.consumer("A", 1, owned=parts(0, 1, 2))
    assert bench.consumer("B", 2).assignment == parts(3, 4)
    bench.consumer("C")
    told = {"A": bench.consumer("A", 2), "B": bench.consumer("B", 2)}
    assert told["A"].assignment == parts(0, 1)
    assert (told["B"].assignment, told["B"].epoch) == (None, 3)


def test_leaving_frees_at_once() -> None:
    """Epoch -1: removed, and the next heartbeat of anyone takes over. See docs/group-protocol.md."""
    bench = Bench()
    joined(bench, "A")
    bench.consumer("B")
    assert bench.consumer("A", -1).epoch == -1
    assert bench.consumer("B", 2).assignment == parts(0, 1, 2, 3)


def test_a_silent_member_is_fenced() -> None:
    """No heartbeat for a session: its partitions go to the others, its epoch means nothing.

    See docs/group-protocol.md.
    """
    bench = Bench()
    joined(bench, "A")
    bench.pass_time(40)
    bench.consumer("B")
    bench.pass_time(6)
    assert bench.consumer("B", 2).assignment == parts(0, 1, 2, 3)
    assert bench.consumer("A", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_let_go_is_fenced() -> None:
    """It heartbeats but keeps its partitions longer than its rebalance timeout. See docs/group-protocol.md."""
    bench = Bench()
    joined(bench, "A", rebalance_ms=5_000)
    bench.consumer("B")
    for _ in range(5):
        assert bench.consumer("A", 1).error is ErrorCode.NONE
        bench.pass_time(1)
    assert bench.consumer("A", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_epochs_fence() -> None:
    """A greater or an older epoch is 110; the previous one only with nothing new claimed.

    See docs/group-protocol.md.
    """
    bench = Bench()
    joined(bench, "A")
    assert bench.consumer("A", 2).error is ErrorCode.FENCED_MEMBER_EPOCH
    bench.consumer("B")
    bench.consumer("A", 1)
    assert bench.consumer("A", 1, owned=parts(0, 1)).epoch == 2
    assert bench.consumer("A", 1, owned=parts(0, 1)).epoch == 2  # the answer was lost
    assert bench.consumer("A", 1, owned=parts(0, 3)).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.consumer("A", 1).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.consumer("A").epoch == 2  # rejoining with epoch 0 and the same id is always possible


def test_commits_carry_the_member_epoch() -> None:
    """113 for another epoch, 25 for a stranger, 35 for a version without epochs. See docs/group-protocol.md."""
    bench = Bench()
    joined(bench, "A")
    assert bench.commit("A", 1, version=9) is ErrorCode.NONE
    assert bench.commit("A", 0, version=9) is ErrorCode.STALE_MEMBER_EPOCH
    assert bench.commit("A", 1, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert bench.commit("X", 1, version=9) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.commit("", -1, version=9) is ErrorCode.UNKNOWN_MEMBER_ID
    bench.consumer("A", -1)
    assert bench.commit("", -1, version=9) is ErrorCode.NONE


def test_fetching_offsets_checks_the_epoch() -> None:
    """Version 9 names member and epoch. See docs/group-protocol.md."""
    bench = Bench()
    joined(bench, "A")
    for member, epoch, error in (
        ("A", 1, ErrorCode.NONE),
        ("A", 7, ErrorCode.STALE_MEMBER_EPOCH),
        ("X", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert bench.ask(OffsetFetch("g", (), member, epoch), OffsetFetchResult).error is error


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (ErrorCode.INVALID_REQUEST, {"rebalance_ms": -1}),
        (ErrorCode.INVALID_REQUEST, {"topics": None}),
        (ErrorCode.INVALID_REQUEST, {"owned": None}),
        (ErrorCode.INVALID_REQUEST, {"owned": parts(0)}),
        (ErrorCode.INVALID_REQUEST, {"instance": ""}),
        (ErrorCode.INVALID_REQUEST, {"regex": "t.*"}),
        (ErrorCode.UNSUPPORTED_ASSIGNOR, {"assignor": "magic"}),
    ],
)
def test_joins_that_make_no_sense_are_refused(error: ErrorCode, how: dict[str, object]) -> None:
    """42 or 112, and no group comes into being. Spec §12 step 1."""
    bench = Bench()
    assert bench.consumer("A", **how).error is error
    assert bench.coordinator.groups() == {}


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        ("", 0, ErrorCode.INVALID_REQUEST),
        ("A", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ("A", -1, ErrorCode.GROUP_ID_NOT_FOUND),
        ("A", -2, ErrorCode.INVALID_REQUEST),
        ("A", -3, ErrorCode.INVALID_REQUEST),
    ],
)
def test_strangers_are_refused(member: str, epoch: int, error: ErrorCode) -> None:
    """A member of elsewhere gets 25, not 69: 69 ends a client, 25 lets it join (docs/group-protocol.md)."""
    assert Bench().consumer(member, epoch).error is error


def test_a_full_group_takes_no_more() -> None:
    """81. Spec §12 step 1."""
    bench = Bench(GroupSettings(max_group_size=1))
    joined(bench, "A")
    assert bench.consumer("B").error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_changed_subscription_or_a_grown_topic_begins_a_new_epoch() -> None:
    """Whoever heartbeats next learns of it. Spec §12 step 3."""
    bench = Bench()
    joined(bench, "A")
    more = bench.consumer("A", 1, topics=("t", "u"))
    assert more.epoch == 2
    assert more.assignment is not None and len(more.assignment) == 6
    bench.topics["u"] = 3
    grown = bench.consumer("A", 2)
    assert grown.epoch == 3
    assert grown.assignment is not None and len(grown.assignment) == 7


def test_the_assignor_most_members_want_is_used() -> None:
    """Else the first of the broker's list. Spec §12 step 4."""
    bench = Bench()
    joined(bench, "A", assignor="range")
    result = bench.ask(ConsumerGroupDescribe(("g", "x")), ConsumerGroupDescribeResult)
    assert (result.groups[0].assignor, result.groups[0].epoch) == ("range", 1)
    assert result.groups[0].members[0].assignment == parts(0, 1, 2, 3)
    assert result.groups[1].error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_full_request_is_answered_in_full() -> None:
    """The assignment is told again when everything is stated. Spec §12 step 7."""
    bench = Bench()
    joined(bench, "A")
    full = bench.consumer("A", 1, rebalance_ms=5_000, topics=("t",), owned=parts(0, 1, 2, 3))
    assert full.assignment == parts(0, 1, 2, 3)


def test_a_static_member_returns_to_its_partitions() -> None:
    """-2 keeps the assignment for a session; the returning instance takes it over. See docs/group-protocol.md."""
    bench = Bench()
    joined(bench, "A", instance="i")
    assert bench.consumer("A2", instance="i").error is ErrorCode.UNRELEASED_INSTANCE_ID
    assert bench.consumer("A", -2, instance="i").epoch == -2
    bench.consumer("B")
    back = bench.consumer("A2", instance="i")
    assert back.assignment == parts(0, 1)
    assert bench.consumer("A", 1, instance="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert bench.consumer("X", 1, instance="nobody").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_return_alone_makes_no_new_epoch() -> None:
    """Nothing changed for the group. See docs/group-protocol.md."""
    bench = Bench()
    joined(bench, "A", instance="i")
    bench.consumer("A", -2, instance="i")
    back = bench.consumer("A2", instance="i")
    assert (back.epoch, back.assignment) == (1, parts(0, 1, 2, 3))


def test_a_static_member_that_stays_away_is_removed() -> None:
    """After a session. See docs/group-protocol.md."""
    bench = Bench()
    joined(bench, "A", instance="i")
    bench.consumer("A", -2, instance="i")
    bench.pass_time(46)
    assert bench.state == "Empty"


def test_the_two_kinds_do_not_mix_while_someone_is_in() -> None:
    """23 for a classic join, 69 for a heartbeat; an empty group changes kind and keeps its offsets.

    See docs/group-protocol.md.
    """
    bench = Bench()
    joined(bench, "A")
    assert bench.joined(bench.send_join()).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bench.commit("A", 1, 5, version=9)
    bench.consumer("A", -1)
    (member,) = bench.stable("a")
    assert bench.committed() == 5
    assert bench.consumer("A").error is ErrorCode.GROUP_ID_NOT_FOUND
    bench.leave(member)
    assert bench.consumer("A").error is ErrorCode.NONE
    assert bench.restarted().coordinator.groups()["g"].kind == "consumer"


def test_the_answer_waits_for_the_disk() -> None:
    """Whatever changed is durable before the member learns of it. See docs/group-protocol.md."""
    bench = Bench()
    bench.log.deferred = True
    request = ConsumerGroupHeartbeat("g", "A", 0, rebalance_ms=5_000, topics=("t",), owned=())
    token = bench.send(request)
    assert bench.is_parked(token)
    bench.flush()
    assert bench.answer(token, ConsumerGroupHeartbeatResult).assignment == parts(0, 1, 2, 3)


def test_the_group_survives_a_restart() -> None:
    """Epochs, targets and holdings are in the log; members go on as if nothing had happened.

    See docs/group-protocol.md.
    """
    bench = Bench()
    joined(bench, "A", instance="i")
    bench.consumer("B")
    bench.consumer("A", 1, instance="i")
    after = bench.restarted()
    (described,) = after.ask(ConsumerGroupDescribe(("g",)), ConsumerGroupDescribeResult).groups
    assert (described.assignor, described.epoch, described.target_epoch) == ("uniform", 2, 2)
    assert after.consumer("B", 2).assignment is None
    assert after.consumer("A", 1, instance="i", owned=parts(0, 1)).epoch == 2
    assert after.consumer("B", 2).assignment == parts(2, 3)
    after.pass_time(46)
    assert after.state == "Empty"


def test_a_log_that_takes_nothing_is_told() -> None:
    """15, and the member asks again. See docs/group-protocol.md."""
    bench = Bench()
    bench.log.full = True
    assert bench.consumer("A").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
