"""Who waits until a partition's in-sync set has everything before an offset: acks=all, parked."""

from __future__ import annotations

from bisect import insort
from itertools import count

from twisted.internet.defer import Deferred

from kafka2011.errors import Kafka2011Error


class Waits:
    """The waiting of one partition, in order of their offsets. Thread: reactor."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Deferred[None]]] = []
        self._numbers = count()

    def until(self, offset: int) -> Deferred[None]:
        """Fire when everything before ``offset`` is replicated; fail when this broker leads no more. Cancellable."""
        waiter: Deferred[None] = Deferred(self._cancelled)
        insort(self._waiting, (offset, next(self._numbers), waiter))
        return waiter

    def _cancelled(self, waiter: Deferred[None]) -> None:
        self._waiting = [one for one in self._waiting if one[2] is not waiter]

    def reached(self, offset: int) -> None:
        """Everything before ``offset`` is replicated."""
        due = 0
        while due < len(self._waiting) and self._waiting[due][0] <= offset:
            due += 1
        if due:
            ready, self._waiting = self._waiting[:due], self._waiting[due:]
            for _, _, waiter in ready:
                waiter.callback(None)

    def fail(self, error: Kafka2011Error) -> None:
        """It will not be replicated by this broker."""
        failed, self._waiting = self._waiting, []
        for _, _, waiter in failed:
            waiter.errback(error)

    def __len__(self) -> int:
        return len(self._waiting)
