"""How long a client waits before it tries again: twice as long each time, up to a limit, and never all at once.

The rule of Kafka's clients since 3.7: a fifth more or less, drawn by lot, so that a thousand clients of a broker that
comes back do not knock in the same millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Backoff:
    """``first_s``, then twice as long each time, at most ``most_s``; a fifth more or less. Thread: any."""

    first_s: float
    most_s: float
    draw: Callable[[], float] = random.random

    def after(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row."""
        if failures <= 0:
            return 0.0
        # Beyond 2**30 the limit has long been reached.
        plain = min(self.first_s * 2.0 ** min(failures - 1, 30), max(self.most_s, self.first_s))
        return plain * (1 + _JITTER * (2 * self.draw() - 1))
