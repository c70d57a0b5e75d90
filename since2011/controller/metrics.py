"""The controller's numbers, under Kafka's names written as Prometheus writes names. ``docs/metrics.md`` lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from since2011.controller.candidate import Candidate
from since2011.controller.context import Context, Counts
from since2011.controller.leadership import leaderless

PREFIX = "kafka2011_controller_"


class Count(NamedTuple):
    """What this broker has done in office, through all its terms."""

    name: str
    text: str
    value: Callable[[Counts], float]


class Number(NamedTuple):
    """A number of the cluster, told by the controller; elsewhere it is 0."""

    name: str
    text: str
    value: Callable[[Context], float]


GAUGES = (
    Number("active_controller_count", "ActiveControllerCount: 1 on the broker that is the controller", lambda _: 1),
    Number("active_broker_count", "ActiveBrokerCount: brokers that are registered", lambda c: len(c.brokers)),
    Number("global_topic_count", "GlobalTopicCount: topics", lambda c: len(c.topics)),
    Number("global_partition_count", "GlobalPartitionCount: partitions",
           lambda c: sum(len(topic.partitions) for topic in tuple(c.topics.values()))),
    Number("offline_partitions_count", "OfflinePartitionsCount: partitions nobody leads",
           lambda c: len(leaderless(c))),
    Number("preferred_replica_imbalance_count", "PreferredReplicaImbalanceCount: partitions another than the first "
           "replica leads",
           lambda c: sum(partition.replicas[:1] != (c.leader(key),) for key, partition in c.partitions())),
    Number("topics_to_delete_count", "TopicsToDeleteCount: topics being deleted", lambda c: len(c.deletions)),
)  # fmt: skip
COUNTERS = (
    Count("leader_elections", "LeaderElectionRateAndTimeMs: partitions that were given another leader",
          lambda counts: counts.elections),
    Count("unclean_leader_elections", "UncleanLeaderElectionsPerSec: of these, by a replica that was behind",
          lambda counts: counts.unclean),
    Count("leader_election_seconds", "LeaderElectionRateAndTimeMs: time in steps that elected leaders",
          lambda counts: counts.seconds),
)  # fmt: skip


class ControllerMetrics(Collector):
    """Reads the context for a look, while its thread may be changing it: a number may be of a moment ago."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate

    def collect(self) -> Iterable[Metric]:
        """Every metric of the controller."""
        for number in GAUGES:
            yield GaugeMetricFamily(PREFIX + number.name, number.text, value=self._value(number))
        for count in COUNTERS:
            yield CounterMetricFamily(PREFIX + count.name, count.text, value=count.value(self._candidate.counts))

    def _value(self, number: Number) -> float:
        for _ in range(10):
            context = self._candidate.context
            try:
                return 0 if context is None else number.value(context)
            except RuntimeError:  # a table was changed while it was walked
                continue
        return float("nan")
