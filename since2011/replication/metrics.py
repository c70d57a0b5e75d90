"""The numbers of a broker's replicas, under Kafka's names as Prometheus has them. ``docs/metrics.md`` lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from since2011.replication.leader import Leader
from since2011.replication.manager import ReplicaManager

PREFIX = "kafka2011_replica_"


class Number(NamedTuple):
    """One number, and how it is found."""

    name: str
    text: str
    value: Callable[[ReplicaManager], float]


def _leaders(manager: ReplicaManager) -> list[Leader]:
    return [led.leader for led in list(manager.led.values()) if led.leader is not None]


def _count(manager: ReplicaManager, is_so: Callable[[Leader], bool]) -> int:
    return sum(is_so(leader) for leader in _leaders(manager))


def _changes(manager: ReplicaManager, name: str) -> int:
    found: int = getattr(manager.leading.in_sync, name, 0)
    return found


GAUGES = (
    Number("leader_count", "LeaderCount: partitions this broker leads", lambda m: len(m.led)),
    Number("partition_count", "PartitionCount: partitions a controller has told this broker of",
           lambda m: len(m.replicas)),
    Number("under_replicated_partitions", "UnderReplicatedPartitions: of those led here, with fewer in sync than "
           "replicas", lambda m: _count(m, lambda leader: len(leader.state.isr) < len(leader.state.replicas))),
    Number("under_min_isr_partition_count", "UnderMinIsrPartitionCount: of those led here, with too few in sync for "
           "acks=all", lambda m: _count(m, lambda leader: len(leader.state.isr) < leader.min_insync)),
    Number("at_min_isr_partition_count", "AtMinIsrPartitionCount: of those led here, with none to spare",
           lambda m: _count(m, lambda leader: len(leader.state.isr) == leader.min_insync)),
    Number("failed_partitions_count", "FailedPartitionsCount: followed here, and not able to go on",
           lambda m: sum(copy.stopped is not None for copy in list(m.following.copies.values()))),
    Number("waiting_produces", "PurgatorySize of Produce: acks=all that wait for replicas",
           lambda m: sum(len(led.waits) for led in list(m.led.values()))),
)  # fmt: skip
COUNTERS = (
    Number("isr_shrinks", "IsrShrinksPerSec: replicas taken out of an in-sync set by a leader here",
           lambda m: _changes(m, "n_shrinks")),
    Number("isr_expands", "IsrExpandsPerSec: replicas let into one", lambda m: _changes(m, "n_expands")),
    Number("failed_isr_updates", "FailedIsrUpdatesPerSec: changes ZooKeeper did not take",
           lambda m: _changes(m, "n_failed")),
    Number("fetched_bytes", "ReplicationBytesInPerSec: fetched from leaders", lambda m: m.following.n_bytes),
)  # fmt: skip


class ReplicaMetrics(Collector):
    """Reads the replicas for a look, while the reactor may be changing them. Thread: any."""

    def __init__(self, manager: ReplicaManager) -> None:
        self._manager = manager

    def collect(self) -> Iterable[Metric]:
        """Every metric of replicas."""
        for number in GAUGES:
            yield GaugeMetricFamily(PREFIX + number.name, number.text, value=number.value(self._manager))
        for number in COUNTERS:
            yield CounterMetricFamily(PREFIX + number.name, number.text, value=number.value(self._manager))
