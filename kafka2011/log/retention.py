"""Which segments to delete: the oldest, by age or by size, whether they were read or not.

Paper: §3.1 Stateless broker ("a message is automatically deleted if it has been retained in the broker longer than a
certain period, typically 7 days"). Size is 0.7's second rule (docs/log.md). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kafka2011.clock import Clock

JUMP_S = 600.0
"""The wall clock may gain this much on the steady clock between two passes before it is doubted."""
BELIEVE_AFTER_S = 3600.0


class Aged(Protocol):
    """A segment, or what was written down about one."""

    @property
    def last_append_ms(self) -> int:
        """When it was last appended to."""


def expired(segments: Sequence[Aged], now_ms: int, retention_ms: int) -> int:
    """How many of the oldest segments were last appended to longer ago than ``retention_ms``."""
    count = 0
    for segment in segments:
        if now_ms - segment.last_append_ms <= retention_ms:
            break
        count += 1
    return count


def oversize(sizes: Sequence[int], limit: int) -> int:
    """How many of the oldest segments can go while at least ``limit`` bytes stay; 0 if the limit is negative."""
    if limit < 0:
        return 0
    excess = sum(sizes) - limit
    count = 0
    for size in sizes:
        if excess - size < 0:
            break
        excess -= size
        count += 1
    return count


class ClockGuard:
    """Doubt a wall clock that leaps forward: with a week too much, every segment looks expired at once. Thread: one.

    A leap holds age-based deletion back for an hour of steady time; a clock that is still there then is believed
    (a laptop that slept is not wrong for ever).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall_ms, self._steady = clock.wall_ms(), clock.monotonic()
        self._doubt_until = self._steady

    def jump_s(self) -> float:
        """Look at both clocks; how far the wall clock leapt since the last look, or 0."""
        wall_ms, steady = self._clock.wall_ms(), self._clock.monotonic()
        leap = (wall_ms - self._wall_ms) / 1000 - (steady - self._steady)
        self._wall_ms, self._steady = wall_ms, steady
        if leap > JUMP_S:
            self._doubt_until = steady + BELIEVE_AFTER_S
            return leap
        if leap < -JUMP_S:
            # It went back: whatever was doubted has been set right.
            self._doubt_until = steady
        return 0.0

    @property
    def believed(self) -> bool:
        """Whether deletion by age may go on."""
        return self._steady >= self._doubt_until
