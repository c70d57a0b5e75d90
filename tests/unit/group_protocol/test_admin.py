"""Describing and listing groups."""

from __future__ import annotations

from consumers.group_protocol.coordinator.requests import DescribeGroups, ListGroups
from consumers.group_protocol.coordinator.results import DescribeGroupsResult, ListGroupsResult
from consumers.group_protocol.subscription import Subscription, decode_assignment
from since2011.wire.error_codes import ErrorCode
from tests.unit.group_protocol.bench import Bench


def test_a_stable_group_is_described_with_its_members() -> None:
    """State, protocol, and each member's bytes as they came. See docs/modern-port.md."""
    bench = Bench()
    leader, _ = bench.stable("a", "b")
    (group,) = bench.ask(DescribeGroups(("g",)), DescribeGroupsResult).groups
    assert (group.state, group.protocol_type, group.protocol) == ("Stable", "consumer", "range")
    assert (group.members[0].member, group.members[0].metadata) == (leader, b"wants t")
    assert group.members[0].assignment == leader.encode()
    bench.send_join(leader)
    (group,) = bench.ask(DescribeGroups(("g",)), DescribeGroupsResult).groups
    assert (group.state, group.members[0].metadata) == ("PreparingRebalance", b"")


def test_an_unknown_group_is_dead_without_an_error() -> None:
    """What admin clients expect. See docs/modern-port.md."""
    group, nameless = Bench().ask(DescribeGroups(("x", "")), DescribeGroupsResult).groups
    assert (group.state, group.error) == ("Dead", ErrorCode.NONE)
    assert nameless.error is ErrorCode.INVALID_GROUP_ID


def test_a_consumer_group_is_described_in_classic_words_too() -> None:
    """Tools that only know DescribeGroups see state, topics and partitions."""
    bench = Bench()
    bench.consumer("A")
    (group,) = bench.ask(DescribeGroups(("g",)), DescribeGroupsResult).groups
    assert (group.state, group.protocol) == ("Stable", "uniform")
    assert Subscription.decode(group.members[0].metadata).topics == ("t",)
    assert len(decode_assignment(group.members[0].assignment)) == 4


def test_groups_of_both_kinds_are_listed_and_filtered() -> None:
    """By state and by kind."""
    bench = Bench()
    bench.consumer("A")
    bench.send_join(group="h")
    listed = bench.ask(ListGroups(), ListGroupsResult).groups
    assert [(each.group, each.state, each.group_type) for each in listed] == [
        ("g", "Stable", "consumer"),
        ("h", "Empty", "classic"),
    ]
    assert [each.group for each in bench.ask(ListGroups(states=("Empty",)), ListGroupsResult).groups] == ["h"]
    assert [each.group for each in bench.ask(ListGroups(types=("consumer",)), ListGroupsResult).groups] == ["g"]
