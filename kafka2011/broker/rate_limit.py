"""Rate-limit noisy events, one per kind per second: a flood of bad requests must not become a flood of log lines."""

from __future__ import annotations

from dataclasses import replace

from kafka2011.broker.events import Frequent
from kafka2011.clock import Clock
from kafka2011.events import Journal

PAUSE_S = 1.0


class RateLimit:
    """Emit at most one event per kind and second; the next one carries the number left out. Thread: reactor."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._emitted: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def emit(self, kind: str, event: Frequent) -> None:
        """Emit ``event``, or count it if one of its ``kind`` was emitted within the last second."""
        now = self._clock.monotonic()
        if now - self._emitted.get(kind, -PAUSE_S) < PAUSE_S:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        self._emitted[kind] = now
        self._journal.emit(replace(event, suppressed=self._left_out.pop(kind, 0)))
