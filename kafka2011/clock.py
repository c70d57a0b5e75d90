"""Time as an argument.

Library code never calls ``time.time()`` for a timeout: it takes a Clock. Tests and the simulator move a
ManualClock. Two times exist because they answer two questions: ``monotonic`` for "how long", ``wall_ms`` for
"when" (file ages, audit windows).
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What a component may ask of time."""

    def monotonic(self) -> float:
        """Seconds that only go forward."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as file times and payloads have them."""

    def sleep(self, seconds: float) -> None:
        """Wait, in real or in virtual time."""


class SystemClock:
    """The machine's clocks. Thread: any."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock that stands still until it is told to move. Thread: one."""

    def __init__(self, wall_ms: int = 1_300_000_000_000) -> None:
        self._now = 0.0
        self._wall_ms = wall_ms

    def monotonic(self) -> float:
        return self._now

    def wall_ms(self) -> int:
        return self._wall_ms + round(self._now * 1000)

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass at once."""
        self._now += seconds


SYSTEM_CLOCK = SystemClock()
