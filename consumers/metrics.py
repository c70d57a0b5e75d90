"""What a consumer counts.

Paper: §3.2 ("the rebalance process often stabilizes after only a few retries": count them).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass


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
