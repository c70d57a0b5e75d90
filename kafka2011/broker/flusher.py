"""Flush in threads: after so many messages, or after so much time, never on the network's thread.

Paper: §3.1: "we flush the segment files to disk only after a configurable number of messages have been published or
a certain amount of time has elapsed. A message is only exposed to the consumers after it is flushed."

Those two thresholds are the longest that a message waits. A reader at the flushed end makes it shorter: while there is
one, what is appended is flushed at once. All logs that are read like this share one pace, so that eager readers cost a
bounded number of syncs, each of which covers everything that has arrived (group commit).

At most one sync is in flight per log. What arrives meanwhile is covered by the next one (group flush). A sync that
fails is final for its log: the flushed mark never moves again there.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from kafka2011.broker.counters import Counters
from kafka2011.broker.reactor import Reactor
from kafka2011.broker.sync_queue import SyncQueue
from kafka2011.broker.waiters import Waiters
from kafka2011.clock import Clock
from kafka2011.errors import FlushFailed
from kafka2011.log.log import Log

_logger = Logger()

WANTED_S = 1.0
"""How long a reader that found nothing is taken to be still there: readers poll, and pause for a tenth of that."""
EARLY_AT_ONCE = 4
"""Logs flushed early at each step of the pace; the others wait for the next."""


class Flusher:
    """Decide when each log is flushed, and tell who waits for it. Thread: reactor."""

    def __init__(
        self,
        reactor: Reactor,
        pool: ThreadPool,
        counters: Counters,
        clock: Clock,
        *,
        n_threads: int = 1,
        early_s: float = 0.0,
    ) -> None:
        self._reactor, self._counters, self._clock = reactor, counters, clock
        self._early_s = early_s
        """The pace of early flushes; 0: there are none."""
        self._wanted: dict[Log, float] = {}
        """When somebody last fetched at the flushed end."""
        self._early: dict[Log, None] = {}
        self._next_early = 0.0
        self._pacing = False
        self._queue = SyncQueue(reactor, pool, n_threads, self._synced)
        self._dirty: dict[Log, None] = {}
        self._in_flight: set[Log] = set()
        self._settled: list[Deferred[None]] = []
        self._again: set[Log] = set()
        self._waiting: dict[Log, Waiters] = {}
        self._callbacks: list[Callable[[Log], None]] = []

    def appended(self, log: Log) -> None:
        """Note that ``log`` holds unflushed messages, and flush it if there are enough."""
        self._dirty[log] = None
        now = self._clock.monotonic()
        if log.should_flush(now):
            self.flush(log)
        elif log in self._wanted:
            self._maybe_flush_early(log, now)

    def wanted(self, log: Log) -> None:
        """Somebody has fetched at the flushed end and found nothing: do not let the next message wait."""
        if self._early_s and not log.failed:
            now = self._clock.monotonic()
            self._wanted[log] = now
            if log.end_offset > log.flushed_offset:
                self._maybe_flush_early(log, now)

    def _maybe_flush_early(self, log: Log, now: float) -> None:
        if now - self._wanted[log] > WANTED_S:
            del self._wanted[log]
            return
        self._early[log] = None
        if not self._pacing:
            self._pacing = True
            self._reactor.callLater(max(0.0, self._next_early - now), self._flush_early)

    def _flush_early(self) -> None:
        """One step of the pace."""
        for log in list(self._early)[:EARLY_AT_ONCE]:
            del self._early[log]
            if log.end_offset > log.flushed_offset and not log.failed:
                self.flush(log)
        self._next_early = self._clock.monotonic() + self._early_s
        self._pacing = bool(self._early)
        if self._pacing:
            self._reactor.callLater(self._early_s, self._flush_early)

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
        self._in_flight.add(log)
        self._queue.put(log)

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

    def settle(self) -> Deferred[None]:
        """Fire when no sync is in flight any more."""
        settled: Deferred[None] = Deferred()
        self._settled.append(settled)
        self._maybe_settled()
        return settled

    def _maybe_settled(self) -> None:
        if not self._in_flight:
            settled, self._settled = self._settled, []
            for waiter in settled:
                waiter.callback(None)

    def _synced(self, log: Log, outcome: int | Exception, seconds: float) -> None:
        if isinstance(outcome, Exception):
            self._failed(log, outcome)
        else:
            self._flushed(log, outcome, seconds)
        self._maybe_settled()

    def _flushed(self, log: Log, offset: int, seconds: float) -> None:
        self._counters.flush_seconds.observe(seconds)
        self._finish(log)
        # Up to what this sync has covered: the next one has begun, and its thread may move the log's own mark any time.
        if log in self._waiting:
            self._waiting[log].reached(offset)
        for callback in self._callbacks:
            try:
                callback(log)
            except Exception:  # one who is told must not keep the others from being told
                _logger.failure("Unhandled error in what follows a flush of {log}", log=log)

    def _failed(self, log: Log, error: Exception) -> None:
        self._counters.flush_failures += 1
        self._again.discard(log)
        self._finish(log)
        self._dirty.pop(log, None)
        if log in self._waiting:
            self._waiting.pop(log).fail(f"{log.topic}-{log.partition} was not flushed: {error}")

    def _finish(self, log: Log) -> None:
        self._in_flight.discard(log)
        if log in self._again:
            self._again.discard(log)
            self.flush(log)
        elif log.n_unflushed:
            self._dirty[log] = None
