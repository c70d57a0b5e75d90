"""Notice that this process was stopped, and for how long: SIGSTOP, a debugger, a machine without memory.

A process that slept past its session is a zombie: others read what it owned, and it does not know. Its fetchers wake up
with it and have, within milliseconds, all that came meanwhile; ZooKeeper's client needs longer to be told. A thread
that only sleeps a little, again and again, is the first to know.

Paper: §3.2 (consumers that fail are replaced; one that comes back is not mentioned).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from kafka2011.clock import Clock


class PauseDetector:
    """Calls ``overslept()`` when a sleep of ``beat_s`` took longer than ``limit_s``. Thread: its own."""

    def __init__(self, clock: Clock, beat_s: float, limit_s: float, overslept: Callable[[], None]) -> None:
        self._clock, self._beat_s, self._limit_s, self._overslept = clock, beat_s, limit_s, overslept
        self._over = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def stop(self) -> None:
        """End it, within a beat."""
        self._over.set()

    def _beat(self) -> None:
        before = self._clock.monotonic()
        while not self._over.wait(self._beat_s):
            now = self._clock.monotonic()
            if now - before > self._limit_s:
                self._overslept()
                now = self._clock.monotonic()
            before = now
