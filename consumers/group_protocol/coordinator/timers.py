"""Deadlines by name, fired by whoever holds the clock.

See docs/group-protocol.md. Thread: one.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Timer:
    """What a deadline is about: ``kind`` says which rule fires, the rest says for whom."""

    kind: str
    group: str = ""
    member: str = ""


class Timers:
    """Each timer has at most one deadline; arming again moves it."""

    def __init__(self) -> None:
        self._deadlines: dict[Timer, float] = {}
        # Stale entries stay in the heap until they surface: moving a deadline is then O(log n).
        self._heap: list[tuple[float, Timer]] = []

    def arm(self, timer: Timer, deadline: float) -> None:
        """Set or move a deadline."""
        self._deadlines[timer] = deadline
        heapq.heappush(self._heap, (deadline, timer))
        if len(self._heap) > 64 + 4 * len(self._deadlines):
            self._heap = [(at, name) for name, at in self._deadlines.items()]
            heapq.heapify(self._heap)

    def cancel(self, timer: Timer) -> None:
        """Forget a deadline, if there is one."""
        self._deadlines.pop(timer, None)

    def is_armed(self, timer: Timer) -> bool:
        return timer in self._deadlines

    def next_deadline(self) -> float | None:
        """When something falls due next, or None."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float) -> Timer | None:
        """Take the earliest timer that is due, or None."""
        self._drop_stale()
        if not self._heap or self._heap[0][0] > now:
            return None
        _, timer = heapq.heappop(self._heap)
        del self._deadlines[timer]
        return timer

    def _drop_stale(self) -> None:
        while self._heap and self._deadlines.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
