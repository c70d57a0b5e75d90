"""Plain numbers the broker counts while it works; ``metrics`` gives them their Prometheus names.

Counting costs an addition: nothing on the way of a request takes a lock or makes a string.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

FLUSH_BUCKETS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(slots=True)
class TopicCounters:
    """What one topic saw."""

    appended_messages: int = 0
    appended_bytes: int = 0
    fetched_bytes: int = 0
    dropped_sets: int = 0
    failed_fetches: int = 0


class Histogram:
    """Counts of durations per bucket, the last bucket open."""

    def __init__(self, bounds: tuple[float, ...] = FLUSH_BUCKETS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


@dataclass(slots=True)
class Counters:
    """All numbers of one broker since it started. Thread: reactor writes, any may read."""

    requests: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Requests by name."""
    sent_bytes: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Bytes of fetched messages by path: sendfile or copy."""
    closed: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Connections the broker closed on its own account, by kind."""
    dropped: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Message sets not appended, by kind."""
    topics: defaultdict[str, TopicCounters] = field(default_factory=lambda: defaultdict(TopicCounters))
    connections_opened: int = 0
    handler_errors: int = 0
    flush_seconds: Histogram = field(default_factory=Histogram)
    flush_failures: int = 0
    deleted_segments: int = 0
    reactor_late: int = 0

    def as_dict(self) -> dict[str, object]:
        """The numbers for ``/state``."""
        topics = self.topics
        return {
            "appended_messages": sum(t.appended_messages for t in list(topics.values())),
            "appended_bytes": sum(t.appended_bytes for t in list(topics.values())),
            "fetched_bytes": _plain(self.sent_bytes),
            "requests": _plain(self.requests),
            "connections_opened": self.connections_opened,
            "connections_closed": _plain(self.closed),
            "dropped_sets": _plain(self.dropped),
            "handler_errors": self.handler_errors,
            "flushes": sum(self.flush_seconds.counts),
            "flush_failures": self.flush_failures,
            "deleted_segments": self.deleted_segments,
            "reactor_late": self.reactor_late,
        }


def _plain(numbers: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(numbers.items()))
