"""Wait until appended batches are on disk, where a topic's ``flush.messages`` or ``flush.ms`` asks for it.

One flush of a log at a time, in a thread: whoever appends meanwhile shares the next one.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from since2011.log.log import ModernLog


class Flushes:
    """Who waits for which log. Thread: reactor."""

    def __init__(self) -> None:
        self._waiting: dict[ModernLog, list[tuple[int, Deferred[int]]]] = {}

    def flushed(self, log: ModernLog, upto: int) -> Deferred[int]:
        """Fire when everything below ``upto`` is on disk, with how far that is; fail with LogFailed."""
        waiter: Deferred[int] = Deferred(lambda _: None)
        waiting = self._waiting.get(log)
        if waiting is not None:
            waiting.append((upto, waiter))
            return waiter
        self._waiting[log] = [(upto, waiter)]
        self._flush(log)
        return waiter

    def _flush(self, log: ModernLog) -> None:
        deferToThread(log.flush).addCallbacks(self._done, self._failed, callbackArgs=(log,), errbackArgs=(log,))

    def _done(self, upto: int, log: ModernLog) -> None:
        waiting = self._waiting[log]
        due = [waiter for offset, waiter in waiting if offset <= upto]
        left = [one for one in waiting if one[0] > upto]
        if left:
            self._waiting[log] = left
            self._flush(log)
        else:
            del self._waiting[log]
        for waiter in due:
            if not waiter.called:
                waiter.callback(upto)

    def _failed(self, failure: Failure, log: ModernLog) -> None:
        for _, waiter in self._waiting.pop(log):
            if not waiter.called:
                waiter.errback(failure)
