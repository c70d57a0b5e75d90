"""Notice when the network thread stands still, and say where it stood."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable

from kafka2011.broker.events import ReactorLate
from kafka2011.clock import Clock

LATE_S = 1.0


class Watchdog:
    """A thread that looks at the last turn of the reactor. ``tick`` is called by a timer on the reactor."""

    def __init__(self, clock: Clock, tell: Callable[[ReactorLate], None]) -> None:
        self._clock = clock
        self._tell = tell
        self._last = clock.monotonic()
        self._told = False
        self._watched = threading.get_ident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Watch the calling thread."""
        self._watched = threading.get_ident()
        self.tick()
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()

    def tick(self) -> None:
        """The reactor turned."""
        self._last = self._clock.monotonic()
        self._told = False

    def look(self) -> None:
        """Tell once if the last turn is too long ago."""
        late = self._clock.monotonic() - self._last
        if late > LATE_S and not self._told:
            self._told = True
            frame = sys._current_frames().get(self._watched)
            stack = "".join(traceback.format_stack(frame, limit=6)) if frame is not None else ""
            self._tell(ReactorLate(seconds=round(late, 3), stack=stack))

    def _watch(self) -> None:
        while not self._stop.wait(LATE_S / 2):
            self.look()
