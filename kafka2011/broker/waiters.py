"""Who waits for something to be on disk.

Paper: §3.1 ("a message is only exposed to the consumers after it is flushed"); whoever asked for an acknowledgement
waits for the same mark.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafka2011.errors import FlushFailed


class Waiters:
    """Deferreds that fire when a mark reaches theirs. Thread: reactor.

    Each is taken out before it is fired, so it is fired once, and one that is cancelled (its connection died, its time
    is up) is simply gone. Whatever the callbacks of one do, the others are fired all the same.
    """

    def __init__(self) -> None:
        self._marks: dict[Deferred[None], int] = {}

    def __len__(self) -> int:
        return len(self._marks)

    def wait_for(self, mark: int) -> Deferred[None]:
        """Fire when ``mark`` is reached; fail with FlushFailed if that can never be known. May be cancelled."""
        waiter: Deferred[None] = Deferred(self._leave)
        self._marks[waiter] = mark
        return waiter

    def reached(self, mark: int) -> None:
        """Everything before ``mark`` is on disk."""
        for waiter in [waiter for waiter, own in self._marks.items() if own <= mark]:
            if self._take(waiter):
                waiter.callback(None)

    def fail(self, why: str) -> None:
        """Nothing more will get to the disk."""
        for waiter in list(self._marks):
            if self._take(waiter):
                waiter.errback(FlushFailed(why))

    def _leave(self, waiter: Deferred[None]) -> None:
        self._take(waiter)

    def _take(self, waiter: Deferred[None]) -> bool:
        """Whether it still waited: another's callbacks may have cancelled it meanwhile."""
        return self._marks.pop(waiter, None) is not None
