"""The cluster as modern clients see it. Paper: §3.2. Spec: modern-group-protocol §3.1, §11."""

from __future__ import annotations

from consumers.group_protocol.cluster import ClusterView, topic_id
from kafka2011.types import BrokerAddress, BrokerPartition


def address(broker: int) -> BrokerAddress:
    return BrokerAddress(broker, f"host{broker}", 9192)


def view(*brokers: int) -> ClusterView:
    return ClusterView({broker: address(broker) for broker in brokers}, {})


def test_a_partitions_number_is_its_place_in_the_row() -> None:
    """Partition i is the i-th of the topic's row, whoever is alive (§3.2)."""
    row = tuple(BrokerPartition.parse(name) for name in ("2-0", "2-1", "1-0", "2-2"))
    seen = ClusterView({2: address(2)}, {"t": row})

    assert tuple(seen.locate("t", n) for n in range(4)) == row
    assert seen.locate("t", 4) is None and seen.locate("t", -1) is None and seen.locate("nothing", 0) is None
    assert seen.ids[topic_id("t")] == "t"


def test_only_a_dead_brokers_groups_move() -> None:
    """Each partition of the offsets log has one coordinator, alike for all; a dead broker's move, no others (§11)."""
    before = {n: view(1, 2, 3).coordinator(n).broker_id for n in range(50)}
    after = {n: view(3, 1).coordinator(n).broker_id for n in range(50)}

    assert {1, 2, 3} == set(before.values())
    assert all(after[n] == before[n] for n in range(50) if before[n] != 2)
    assert {1, 3} == set(after.values())
    assert before == {n: view(3, 2, 1).coordinator(n).broker_id for n in range(50)}
