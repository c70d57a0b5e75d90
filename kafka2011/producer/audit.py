"""Count what was published, per topic and window, and publish the counts: so that loss can be noticed.

A window belongs to the event's own time, not to the time of counting, so that producers, consumers and the nightly
load, which see a message hours apart, count it in the same window. Counts are deltas: a window's count is the sum over
all audit events for it. (producer, sequence) is unique, so a copy of an audit event is recognised.

    {"producer": "web-1", "topic": "clicks", "window_start_ms": 1300000000000, "window_ms": 10000,
     "count": 523, "sequence": 17}

Paper: §4 ("each producer periodically generates a monitoring event, which records the number of messages published
by that producer for each topic within a fixed time window").
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable

from kafka2011.clock import SYSTEM_CLOCK, Clock

TimestampOf = Callable[[bytes], int | None]
"""The event's own time in ms, read from its payload; None if it has none, then the present counts."""


class Audit:
    """Counts of one producer. Thread: any.

    A restarted producer of the same name must not repeat a sequence number, so numbers start at the wall clock.
    """

    def __init__(
        self,
        timestamp_of: TimestampOf,
        window_ms: int = 10_000,
        topic: str = "audit",
        producer: str | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.topic = topic
        self.window_ms = window_ms
        self.producer = producer or f"{socket.gethostname()}-{os.getpid()}"
        self._timestamp_of = timestamp_of
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, int]] = Counter()
        self._sequence = clock.wall_ms() << 20

    def count(self, topic: str, payloads: Iterable[bytes]) -> None:
        """Count messages of ``topic`` in the windows of their own times. The audit's own topic is not counted."""
        if topic == self.topic:
            return
        window_ms = self.window_ms
        windows: Counter[tuple[str, int]] = Counter()
        for payload in payloads:
            time_ms = self._timestamp_of(payload)
            if time_ms is None:
                time_ms = self._clock.wall_ms()
            windows[topic, time_ms - time_ms % window_ms] += 1
        with self._lock:
            self._counts.update(windows)

    def take(self) -> list[bytes]:
        """The audit events for what was counted since the last call."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
            first = self._sequence
            self._sequence += len(counts)
        return [
            json.dumps(
                {
                    "producer": self.producer,
                    "topic": topic,
                    "window_start_ms": start,
                    "window_ms": self.window_ms,
                    "count": count,
                    "sequence": sequence,
                }
            ).encode()
            for sequence, ((topic, start), count) in enumerate(sorted(counts.items()), first)
        ]


class AuditTimer:
    """Publish the counts once per window, in a thread of its own, until stopped. Thread: any."""

    def __init__(self, audit: Audit, publish: Callable[[], None]) -> None:
        self._period_s = audit.window_ms / 1000
        self._publish = publish
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="producer audit", daemon=True).start()

    def stop(self) -> None:
        """End the thread; does not wait for it."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._period_s):
            self._publish()
