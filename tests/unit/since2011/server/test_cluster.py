"""The cluster as modern clients see it. Paper: §3.2. See docs/group-protocol.md."""

from __future__ import annotations

from kafka2011.types import BrokerAddress, BrokerPartition
from since2011.topics.cluster import ClusterView, topic_id


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
