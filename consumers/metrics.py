"""What a consumer counts, and the same as Prometheus text.

    start_http_server(8000, registry=registry_of(consumer.group, consumer.counters))     # from prometheus_client

Paper: §3.2 ("the rebalance process often stabilizes after only a few retries": count them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily


@dataclass(slots=True)
class ConsumerCounters:
    """Plain numbers, read through ``Consumer.counters``. Thread: worker."""

    rebalances: int = 0
    failed_attempts: int = 0
    gave_up: int = 0
    partitions_moved: int = 0
    last_rebalance_s: float = 0.0
    rebalance_s: float = 0.0
    commits: int = 0
    offsets_committed: int = 0
    commits_failed: int = 0
    commits_fenced: int = 0
    sessions_lost: int = 0

    def rebalanced(self, seconds: float, before: Set[object], after: Set[object]) -> None:
        """Count one that succeeded."""
        self.rebalances += 1
        self.partitions_moved += len(before ^ after)
        self.last_rebalance_s = seconds
        self.rebalance_s += seconds


class _Collector:
    """Reads the counters when Prometheus asks. Thread: any."""

    def __init__(self, group: str, counters: ConsumerCounters) -> None:
        self._group, self._counters = group, counters

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The families, each with its group."""
        now = self._counters
        rebalances = {"done": now.rebalances, "attempt_failed": now.failed_attempts, "gave_up": now.gave_up}
        commits = {"done": now.commits, "failed": now.commits_failed, "fenced": now.commits_fenced}
        yield self._family("rebalances", "Rebalances by outcome", rebalances)
        yield self._family("rebalance_seconds", "Time spent in rebalances that succeeded", {"done": now.rebalance_s})
        yield self._family("partitions_moved", "Partitions gained or given up", {"done": now.partitions_moved})
        yield self._family("commits", "Commits by outcome", commits)
        yield self._family("sessions_lost", "ZooKeeper sessions lost", {"lost": now.sessions_lost})

    def _family(self, what: str, text: str, values: Mapping[str, float]) -> CounterMetricFamily:
        family = CounterMetricFamily(f"kafka2011_consumer_{what}", text, labels=["group", "outcome"])
        for outcome, value in values.items():
            family.add_metric([self._group, outcome], value)
        return family


def registry_of(group: str, counters: ConsumerCounters) -> CollectorRegistry:
    """A registry of one consumer's numbers, for ``generate_latest`` or an exporter of one's own."""
    registry = CollectorRegistry()
    registry.register(_Collector(group, counters))
    return registry
