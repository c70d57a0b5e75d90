"""Flush in threads: after so many messages, or after so much time, never on the network's thread.

Paper: §3.1: "we flush the segment files to disk only after a configurable number of messages have been published or
a certain amount of time has elapsed. A message is only exposed to the consumers after it is flushed."

At most one sync is in flight per log. What arrives meanwhile is covered by the next one (group flush). A sync that
fails is final for its log: the flushed mark never moves again there.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from twisted.internet.defer import Deferred, fail, gatherResults, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from kafka2011.broker.counters import Counters
from kafka2011.broker.reactor import Reactor, in_thread
from kafka2011.broker.waiters import Waiters
from kafka2011.clock import Clock
from kafka2011.errors import FlushFailed
from kafka2011.log.log import Log

_logger = Logger()


class Flusher:
    """Decide when each log is flushed, and tell who waits for it. Thread: reactor."""

    def __init__(self, reactor: Reactor, pool: ThreadPool, counters: Counters, clock: Clock) -> None:
        self._reactor, self._pool, self._counters = reactor, pool, counters
        self._clock = clock
        self._dirty: dict[Log, None] = {}
        self._in_flight: dict[Log, Deferred[None]] = {}
        self._again: set[Log] = set()
        self._waiting: dict[Log, Waiters] = {}
        self._callbacks: list[Callable[[Log], None]] = []

    def appended(self, log: Log) -> None:
        """Note that ``log`` holds unflushed messages, and flush it if there are enough."""
        self._dirty[log] = None
        if log.should_flush(self._clock.monotonic()):
            self.flush(log)

    def tick(self) -> None:
        """Flush what has waited long enough. Called by a timer."""
        now = self._clock.monotonic()
        for log in list(self._dirty):
            if log.should_flush(now):
                self.flush(log)

    def flush(self, log: Log) -> None:
        """Begin a sync of ``log``, or see to it that one more follows the running one."""
        if log in self._in_flight:
            self._again.add(log)
            return
        self._dirty.pop(log, None)
        begun = perf_counter()
        self._in_flight[log] = in_thread(self._reactor, self._pool, log.flush).addCallbacks(
            self._flushed, self._failed, callbackArgs=(log, begun), errbackArgs=(log,)
        )

    def when_flushed(self, log: Log, offset: int) -> Deferred[None]:
        """Fire when everything before ``offset`` is on disk; fail with FlushFailed if it never will be. Cancellable."""
        if log.flushed_offset >= offset:
            return succeed(None)
        if log.failed:
            return fail(FlushFailed(f"{log.topic}-{log.partition} is not flushed any more: {log.failed}"))
        return self._waiting.setdefault(log, Waiters()).wait_for(offset)

    def on_flushed(self, callback: Callable[[Log], None]) -> None:
        """Call ``callback(log)`` on the reactor after every flush."""
        self._callbacks.append(callback)

    def settle(self) -> Deferred[list[None]]:
        """Fire when no sync is in flight any more."""
        return gatherResults(list(self._in_flight.values()))

    def _flushed(self, offset: int, log: Log, begun: float) -> None:
        self._counters.flush_seconds.observe(perf_counter() - begun)
        self._finish(log)
        # Up to what this sync has covered: the next one has begun, and its thread may move the log's own mark any time.
        if log in self._waiting:
            self._waiting[log].reached(offset)
        for callback in self._callbacks:
            try:
                callback(log)
            except Exception:  # one who is told must not keep the others from being told
                _logger.failure("Unhandled error in what follows a flush of {log}", log=log)

    def _failed(self, failure: Failure, log: Log) -> None:
        self._counters.flush_failures += 1
        self._again.discard(log)
        self._finish(log)
        self._dirty.pop(log, None)
        if log in self._waiting:
            self._waiting.pop(log).fail(f"{log.topic}-{log.partition} was not flushed: {failure.getErrorMessage()}")

    def _finish(self, log: Log) -> None:
        del self._in_flight[log]
        if log in self._again:
            self._again.discard(log)
            self.flush(log)
        elif log.n_unflushed:
            self._dirty[log] = None
