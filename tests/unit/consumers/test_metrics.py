"""A consumer's numbers as Prometheus text."""

from __future__ import annotations

from prometheus_client import generate_latest

from consumers.metrics import ConsumerCounters, registry_of


def test_rebalances_and_commits_are_exported_by_outcome() -> None:
    """A monitor sees how often a group rebalanced, how long that took, and which commits were refused (§3.2)."""
    counters = ConsumerCounters(failed_attempts=2, commits=7, commits_fenced=1)
    registry = registry_of("billing", counters)
    counters.rebalanced(1.5, {"0-0"}, {"0-0", "0-1"})
    text = generate_latest(registry).decode()

    assert 'kafka2011_consumer_rebalances_total{group="billing",outcome="done"} 1.0' in text
    assert 'kafka2011_consumer_rebalances_total{group="billing",outcome="attempt_failed"} 2.0' in text
    assert 'kafka2011_consumer_rebalance_seconds_total{group="billing",outcome="done"} 1.5' in text
    assert 'kafka2011_consumer_partitions_moved_total{group="billing",outcome="done"} 1.0' in text
    assert 'kafka2011_consumer_commits_total{group="billing",outcome="fenced"} 1.0' in text
