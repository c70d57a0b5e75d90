"""Why a group rebalances, in words."""

from __future__ import annotations

import pytest

from consumers.algorithm1.editions import PRINTED, SHIPPED, SOUND, Edition
from consumers.algorithm1.reasons import OVER, describe, difference
from consumers.algorithm1.registries import View
from consumers.events import RebalanceDone, RebalanceStarted
from kafka2011.types import BrokerAddress, BrokerPartition
from tests.unit.consumers.conftest import Cluster, Driven, part
from zk_registry import paths
from zk_registry.brokers import encode_broker
from zk_registry.consumers import Subscription
from zk_registry.operations import Create, Delete, Set

T = Subscription.fixed({"t": 1})


def view(members: str = "a b", brokers: str = "0 1", **topics: str) -> View:
    """Members and brokers by name; each topic as its partitions, ``0-0 0-1``."""
    return View(
        members=dict.fromkeys(members.split(), T),
        addresses={int(b): BrokerAddress(int(b), "h", 9092) for b in brokers.split()},
        partitions={topic: [BrokerPartition.parse(p) for p in parts.split()] for topic, parts in topics.items()},
    )


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (view(), view(), []),
        (view("a"), view("a c b"), ["member b joined", "member c joined"]),
        (view("a b"), view("b"), ["member a is gone"]),
        (view(brokers="0"), view(brokers="0 1"), ["broker 1 appeared"]),
        (view(t="0-0 1-0"), view(brokers="0", t="0-0"), ["broker 1 vanished"]),
        (view(brokers="0", t="0-0"), view(t="0-0 1-0 1-1"), ["broker 1 appeared"]),
        (view(t="0-0"), view(t="0-0 0-1 1-0"), ["topic t grew to 3 partitions"]),
        (view(t="0-0 0-1"), view(t="0-0"), ["topic t shrank to 1 partition"]),
        (view(t=""), view(t="0-0 0-1"), ["topic t appeared with 2 partitions"]),
        (view(t="0-0"), view(t=""), ["topic t vanished"]),
        (view("a", t="0-0"), view("b", "0", t="0-0 0-1"), [
            "member b joined", "member a is gone", "broker 1 vanished", "topic t grew to 2 partitions"
        ]),
    ],
)  # fmt: skip
def test_what_changed_is_found_by_comparing(before: View, now: View, words: list[str]) -> None:
    """Members, brokers and topics that came, went or grew between two looks; partitions go with their broker (§3.2)."""
    assert difference(before, now) == words


def test_many_causes_are_cut_short_and_none_is_named() -> None:
    """A line stays a line: five causes and how many more; a change that left no trace is called that (§3.2)."""
    assert describe(f"member {i} joined" for i in range(8)).endswith("member 4 joined; and 3 more")
    assert describe(["x", "x"]) == "x"
    assert describe([]) == OVER


def reasons(member: Driven) -> list[str]:
    return [event.reason for event in member.events(RebalanceDone)]  # type: ignore[attr-defined]


def change(cluster: Cluster, member: Driven) -> str:
    """Let the member hear of what was done; the reason it gives."""
    cluster.zookeeper.deliver()
    member.settle()
    return reasons(member)[-1]


@pytest.mark.parametrize("edition", [PRINTED, SHIPPED, SOUND], ids=lambda edition: edition.name)
def test_a_rebalance_says_why(cluster: Cluster, edition: Edition) -> None:
    """Every rebalance carries its reason, in every edition (§3.2)."""
    a = Driven(cluster, "a", edition=edition)
    a.settle()
    assert reasons(a) == ["it joined"]

    cluster.topic("t", 6)
    assert change(cluster, a) == "topic t grew to 6 partitions"
    other = cluster.zookeeper.session()
    other.perform(Create(paths.consumer_id("g", "g_b"), b'{ "t": 1 }', ephemeral=True))
    assert change(cluster, a) == "member g_b joined"
    other.perform(Delete(paths.consumer_id("g", "g_b")))
    assert change(cluster, a) == "member g_b is gone"
    other.perform(Create(paths.broker_id(1), encode_broker("h", 9093, 0), ephemeral=True))
    other.perform(Create(paths.topic_on_broker("t", 1), b"1", ephemeral=True))
    assert change(cluster, a) == "broker 1 appeared"
    other.close()
    assert change(cluster, a) == "broker 1 vanished"
    cluster.registry.perform(Set(paths.topic_on_broker("t", 0), b"7"))
    a.session.expire()
    assert change(cluster, a) == "its session was lost"


def test_the_sound_edition_knows_before_it_begins(cluster: Cluster) -> None:
    """It looks before it lets go: the start of a rebalance has the reason already (§3.2)."""
    a = Driven(cluster, "a")
    a.settle()
    cluster.topic("t", 5)
    change(cluster, a)
    cluster.registry.perform(Delete(paths.owner("g", "t", part(0).partition)))
    change(cluster, a)

    assert [event.reason for event in a.events(RebalanceStarted)] == [  # type: ignore[attr-defined]
        "it joined", "topic t grew to 5 partitions", "its claim of t/0-0 was taken out"
    ]  # fmt: skip


def test_a_change_that_stops_nobody_is_no_reason_for_the_next_one(cluster: Cluster) -> None:
    """What left the share as it was is not told later (§3.2)."""
    a = Driven(cluster, "a", topics={"one": 1})
    cluster.topic("one", 1)
    a.settle()
    other = cluster.zookeeper.session()
    other.perform(Create(paths.consumer_id("g", "g_b"), b'{ "t": 1 }', ephemeral=True))
    cluster.zookeeper.deliver()
    a.settle()
    cluster.topic("one", 2)

    assert change(cluster, a) == "topic one grew to 2 partitions"
