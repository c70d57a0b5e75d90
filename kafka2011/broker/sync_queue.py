"""Logs on their way to the disk: a few threads sync them one after the other, and the reactor is told of many at once.

A job and a wake-up for each log would cost more than the sync itself where hundreds of partitions are written to.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter

from twisted.python.threadpool import ThreadPool

from kafka2011.broker.reactor import Reactor
from kafka2011.log.log import Log

Done = Callable[[Log, int | Exception, float], None]
"""Told of a log, the offset it is flushed up to or what went wrong, and how many seconds that took."""


class SyncQueue:
    """Sync what is put here. Thread: reactor, also for ``done``.

    At most ``most`` threads of ``pool`` work on it; a disk that hangs on one log holds up one of them.
    """

    def __init__(self, reactor: Reactor, pool: ThreadPool, most: int, done: Done) -> None:
        self._reactor, self._pool, self._most, self._done = reactor, pool, most, done
        self._lock = threading.Lock()
        self._todo: deque[Log] = deque()
        self._n_working = 0
        self._finished: deque[tuple[Log, int | Exception, float]] = deque()
        self._told = False
        """Whether the reactor knows that something is finished and has not looked yet."""

    def put(self, log: Log) -> None:
        """Sync ``log`` soon."""
        with self._lock:
            self._todo.append(log)
            if self._n_working == self._most:
                return
            self._n_working += 1
        self._pool.callInThread(self._work)

    def _work(self) -> None:
        """Thread: one of the pool's."""
        while True:
            with self._lock:
                if not self._todo:
                    self._n_working -= 1
                    return
                log = self._todo.popleft()
            begun = perf_counter()
            outcome: int | Exception
            try:
                outcome = log.flush()
            except Exception as error:  # whatever it is, those who wait for this log must hear of it
                outcome = error
            self._finished.append((log, outcome, perf_counter() - begun))
            with self._lock:
                told, self._told = self._told, True
            if not told:
                self._reactor.callFromThread(self._collect)

    def _collect(self) -> None:
        with self._lock:
            self._told = False
        while self._finished:
            self._done(*self._finished.popleft())
