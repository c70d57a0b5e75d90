"""Wait for a condition with a deadline: the only way a test may wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 60.0
"""Generous on purpose: it bounds a hang, it never decides whether something was fast enough."""


def until(condition: Callable[[], T], what: str, timeout_s: float = PATIENCE_S) -> T:
    """Return the first true value of ``condition()``; fail naming ``what`` after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    pause = 0.005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s:.0f} s in vain until {what}; last value {value!r}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
