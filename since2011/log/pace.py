"""Work that must not be noticed: the cleaner does a little and rests, so that producers wait for nothing.

Only one thread of a Python process computes at a time, and one that computes gives way after five milliseconds at the
earliest. So long work is done in short turns with a rest after each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kafka2011.clock import Clock

Pace = Callable[[int], None]
"""Called with the number of bytes just worked on."""
TURN_S = 0.001
FOREVER = 2**63 - 1


def unhurried(n_bytes: int) -> None:
    """No rest at all: for a command, where nobody else waits."""


@dataclass(slots=True)
class Rests:
    """Rest so that at most ``share`` of the time, and at most ``bytes_per_s``, go to this work. Thread: one."""

    clock: Clock
    share: float = 0.5
    bytes_per_s: float = FOREVER
    _began: float = field(init=False)
    _bytes: int = 0

    def __post_init__(self) -> None:
        self._began = self.clock.monotonic()

    def __call__(self, n_bytes: int) -> None:
        self._bytes += n_bytes
        worked = self.clock.monotonic() - self._began
        if worked < TURN_S and self._bytes < self.bytes_per_s * TURN_S:
            return
        rest = max(worked * (1 / self.share - 1), self._bytes / self.bytes_per_s - worked)
        if rest > 0:
            self.clock.sleep(rest)
        self._began, self._bytes = self.clock.monotonic(), 0
