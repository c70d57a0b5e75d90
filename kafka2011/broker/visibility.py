"""Who decides how far readers may see, and when a message is safe.

Paper: §3.1, "a message is only exposed to the consumers after it is flushed". Here the flushed mark decides. A plug-in
that waits for more than this disk puts its own decision in the place of this one (``Broker.visibility``), together with
its own kind of log (``LogStore.kind_of_log``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from twisted.internet.defer import Deferred

from kafka2011.broker.flusher import Flusher
from kafka2011.log.log import Log


class Visibility:
    """What is flushed is visible, and safe. Thread: reactor."""

    has_copies: ClassVar[bool] = False
    """Whether others hold what this broker holds, so that one can wait for them."""

    def __init__(self, flusher: Flusher) -> None:
        self._flusher = flusher

    def when_safe(self, log: Log, offset: int) -> Deferred[None]:
        """Fire when everything before ``offset`` is visible; fail if it never will be. Cancellable."""
        return self._flusher.when_flushed(log, offset)

    def on_moved(self, callback: Callable[[Log], None]) -> None:
        """Call ``callback(log)`` whenever readers may see more of it."""
        self._flusher.on_flushed(callback)

    def check_copies(self) -> None:
        """Raise TooFewInSync if fewer hold copies than an acknowledgement by all of them asks for."""
