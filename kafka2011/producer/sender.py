"""Between the application's threads and one broker: send at once, or through a bounded queue and a thread.

The thread takes all that queued up while it was sending and sends it in one go, so that the faster the application
is, the fewer system calls a message costs. It is woken only when it sleeps.

Paper: §3 (producer), §5 (batches).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from kafka2011.clock import Clock
from kafka2011.errors import ConnectionFailed, ProducerClosed, QueueFull, UnknownError
from kafka2011.producer.batch import Item, Lane, PendingBatch
from kafka2011.producer.transmit import GivenUp, ProducerSettings, Transmitter

_NEVER = sys.maxsize

Report = Callable[[str, int, str], None]
"""Told of every drop: topic, number of messages, reason."""


class Sender(Protocol):
    """What the producer asks of either kind."""

    @property
    def accepted(self) -> int:
        """Messages put, without those that came from another broker's queue."""

    def put(self, lane: Lane, items: Sequence[Item], size: int, forced: bool = False) -> bool:
        """Take messages of ``size`` bytes in all; False if the queue is full and the policy is to drop.

        ``forced`` (a batch from another broker's queue, accepted long ago) goes beyond the bound.
        """

    def flush(self, deadline: float | None) -> bool:
        """Wait until what was put so far is sent or dropped; False if the deadline came first."""

    def close(self, deadline: float | None) -> None:
        """Send what is left, and end."""


class SyncSender:
    """Send in the caller's thread and raise what goes wrong. Thread: any."""

    def __init__(self, transmitter: Transmitter, lock: threading.RLock) -> None:
        self._accepted = 0
        self._transmitter = transmitter
        # One lock for all brokers of a producer: a batch may have to be passed on from one to another.
        self._lock = lock

    @property
    def accepted(self) -> int:
        return self._accepted

    def put(self, lane: Lane, items: Sequence[Item], size: int, forced: bool = False) -> bool:
        with self._lock:
            if not forced:
                self._accepted += len(items)
            given_up = self._transmitter.transmit([PendingBatch(lane, items)], len(items))
        if given_up:
            raise given_up[0].error
        return True

    def flush(self, deadline: float | None) -> bool:
        return True

    def close(self, deadline: float | None) -> None:
        with self._lock:
            self._transmitter.close()


class AsyncSender:
    """A bounded queue and a thread that empties it. Thread: any.

    The thread is idle -> lingering: something was put; -> sending: ``batch_size`` messages are there, the linger is
    over, or someone flushes; -> idle. ``_wake_at`` is the number of queued messages at which ``put`` must wake it.
    """

    def __init__(self, transmitter: Transmitter, settings: ProducerSettings, report: Report, clock: Clock) -> None:
        self._transmitter = transmitter
        self._clock = clock
        self._settings = settings
        self._report = report
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._queue_size, self._queue_bytes = settings.queue_size, settings.queue_bytes
        self._lanes: list[Lane] = []
        """Those with something pending; a lane's ``pending`` is guarded by the lock too."""
        self._n_queued = 0
        self._bytes_queued = 0
        self._wake_at = _NEVER
        self._n_taken = 0
        self._n_settled = 0
        self._n_forced = 0
        self._hurry = False
        self._closing = False
        self._blocked = 0
        self._thread = threading.Thread(target=self._run, name=f"producer to {transmitter.address}", daemon=True)
        self._thread.start()

    @property
    def accepted(self) -> int:
        with self._lock:
            return self._n_taken + self._n_queued - self._n_forced

    def put(self, lane: Lane, items: Sequence[Item], size: int, forced: bool = False) -> bool:
        n = len(items)
        with self._lock:
            queued = self._n_queued + n
            total = self._bytes_queued + size
            if queued > self._queue_size or total > self._queue_bytes or forced:
                if not self._admit(n, size, forced):
                    return False
                queued = self._n_queued + n
                total = self._bytes_queued + size
            pending = lane.pending
            if not pending:
                self._lanes.append(lane)
            pending += items
            self._n_queued = queued
            self._bytes_queued = total
            if queued >= self._wake_at:
                self._wake_at = _NEVER
                self._work.notify()
        return True

    def flush(self, deadline: float | None) -> bool:
        with self._lock:
            target = self._n_taken + self._n_queued
            while self._n_settled < target:
                self._hurry = True
                self._work.notify()
                if not self._room.wait(self._left(deadline)):
                    return False
        return True

    def close(self, deadline: float | None) -> None:
        with self._lock:
            self._closing = True
            self._queue_size = -1  # every later put is looked at closely
            self._work.notify()
            self._room.notify_all()
        self._thread.join(self._left(deadline))
        if self._thread.is_alive():
            late = ConnectionFailed("not sent before close() ran out of time")
            self._drop([GivenUp(lane, len(items), late) for lane, items in self._take()])

    # -- waiting, with the lock held ----------------------------------------------------------------------------

    def _admit(self, n: int, size: int, forced: bool) -> bool:
        """Apply the policy for a full queue; a set larger than the whole queue is let in when the queue is empty."""
        if forced:
            self._n_forced += 0 if self._closing else n
            return not self._closing
        while True:
            if self._closing:
                raise ProducerClosed("the producer was closed; nothing of this set was sent. Make a new Producer")
            room = self._n_queued + n <= self._queue_size and self._bytes_queued + size <= self._queue_bytes
            if room or not self._n_queued:
                return True
            if self._settings.on_full == "drop":
                return False
            if self._settings.on_full == "raise":
                raise QueueFull(
                    f"the producer's queue to {self._transmitter.address} holds {self._n_queued} messages "
                    f"({self._bytes_queued} bytes) and takes no more; nothing of this set was queued, try again later"
                )
            self._blocked += 1
            self._work.notify()
            self._room.wait()
            self._blocked -= 1

    def _wait_for_work(self) -> bool:
        """Sleep until a batch is due; False when closed and empty."""
        while not self._lanes:
            self._hurry = False
            if self._closing:
                return False
            self._wake_at = 1
            self._work.wait()
        due = self._clock.monotonic() + self._settings.linger_ms / 1000
        while self._n_queued < self._settings.batch_size and not (self._hurry or self._closing or self._blocked):
            left = due - self._clock.monotonic()
            if left <= 0:
                break
            self._wake_at = self._settings.batch_size
            self._work.wait(left)
        self._wake_at = _NEVER
        return True

    # -- the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._wait_for_work():
                    break
            pending = self._take()
            self._drop(self._transmit(pending))
            with self._lock:
                self._n_settled += sum(len(items) for _, items in pending)
                self._room.notify_all()
        self._transmitter.close()

    def _transmit(self, pending: list[PendingBatch]) -> list[GivenUp]:
        try:
            return self._transmitter.transmit(pending, self._settings.batch_size)
        except Exception as error:  # whatever it is (a router of the application's own, say), it is told as a drop
            reason = UnknownError(f"sending failed in an unforeseen way: {error!r}")
            return [GivenUp(lane, len(items), reason) for lane, items in pending]

    def _take(self) -> list[PendingBatch]:
        with self._lock:
            pending = [PendingBatch(lane, lane.pending) for lane in self._lanes]
            for lane in self._lanes:
                lane.pending = []
            self._lanes = []
            self._n_taken += self._n_queued
            self._n_queued = self._bytes_queued = 0
            if self._blocked:
                self._room.notify_all()
        return pending

    def _drop(self, given_up: list[GivenUp]) -> None:
        for lane, n, error in given_up:
            self._report(lane.topic, n, str(error))

    def _left(self, deadline: float | None) -> float | None:
        return None if deadline is None else max(deadline - self._clock.monotonic(), 0)
