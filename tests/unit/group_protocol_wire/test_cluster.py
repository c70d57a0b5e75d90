"""The cluster as modern clients see it. Paper: §3.2. Spec: modern-group-protocol §3.1, §11."""

from __future__ import annotations

from consumers.group_protocol.cluster import ClusterView, merged, topic_id
from kafka2011.types import BrokerAddress, BrokerPartition


def address(broker: int) -> BrokerAddress:
    return BrokerAddress(broker, f"host{broker}", 9192)


def row(broker: int, n: int) -> list[BrokerPartition]:
    return [BrokerPartition(broker, partition) for partition in range(n)]


def view(*brokers: int) -> ClusterView:
    return ClusterView({broker: address(broker) for broker in brokers}, {})


def test_partitions_are_numbered_over_the_sorted_pairs() -> None:
    """Partition i is the i-th (broker, partition) of the registry; who has no modern port is left out (§3.2)."""
    here = ClusterView({2: address(2)}, {"t": row(2, 2), "mine": row(2, 1)})
    others = {1: address(1), 10: address(10)}

    seen = merged(here, others, {"t": row(1, 1) + row(10, 1) + row(3, 4) + row(2, 9), "theirs": row(10, 1)})

    assert seen.topics["t"] == [*row(1, 1), *row(2, 2), *row(10, 1)]
    assert [place.broker_id for n in range(4) if (place := seen.locate("t", n))] == [1, 2, 2, 10]
    assert seen.locate("t", 4) is None and seen.locate("t", -1) is None and seen.locate("nothing", 0) is None
    assert {"t", "mine", "theirs"} == set(seen.topics)
    assert seen.ids[topic_id("theirs")] == "theirs"


def test_only_a_dead_brokers_groups_move() -> None:
    """Each partition of the offsets log has one coordinator, alike for all; a dead broker's move, no others (§11)."""
    before = {n: view(1, 2, 3).coordinator(n).broker_id for n in range(50)}
    after = {n: view(3, 1).coordinator(n).broker_id for n in range(50)}

    assert {1, 2, 3} == set(before.values())
    assert all(after[n] == before[n] for n in range(50) if before[n] != 2)
    assert {1, 3} == set(after.values())
    assert before == {n: view(3, 2, 1).coordinator(n).broker_id for n in range(50)}
