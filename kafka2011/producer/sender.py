"""Between the application's threads and one broker: send at once, or through a bounded queue and a thread.

The thread takes all that queued up while it was sending and sends it in one go, so that the faster the application
is, the fewer system calls a message costs. It is woken only when it sleeps.

Paper: §3 (producer), §5 (batches).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Protocol

from kafka2011.clock import Clock
from kafka2011.errors import ConnectionFailed, ProducerClosed, QueueFull
from kafka2011.producer.batch import Batch, Lane
from kafka2011.producer.carrier import Carrier, GivenUp, ProducerSettings

_NEVER = sys.maxsize

Report = Callable[[str, int, str], None]
"""Told of every drop: topic, number of messages, reason."""


class Sender(Protocol):
    """What the producer asks of either kind."""

    accepted: int
    """Messages put, without those that came from another broker's queue."""

    def put(self, lane: Lane, data: bytes, n: int, forced: bool = False) -> bool:
        """Take a set; False if the queue is full and the policy is to drop.

        ``forced`` (a batch from another broker's queue, accepted long ago) goes beyond the bound.
        """

    def flush(self, deadline: float | None) -> bool:
        """Wait until what was put so far is sent or dropped; False if the deadline came first."""

    def close(self, deadline: float | None) -> None:
        """Send what is left, and end."""


class SyncSender:
    """Send in the caller's thread and raise what goes wrong. Thread: any."""

    def __init__(self, carrier: Carrier, lock: threading.RLock) -> None:
        self.accepted = 0
        self._carrier = carrier
        # One lock for all brokers of a producer: a batch may have to be passed on from one to another.
        self._lock = lock

    def put(self, lane: Lane, data: bytes, n: int, forced: bool = False) -> bool:
        with self._lock:
            if not forced:
                self.accepted += n
            given_up = self._carrier.carry([(lane, data, n)])
        if given_up:
            raise given_up[0].error
        return True

    def flush(self, deadline: float | None) -> bool:
        return True

    def close(self, deadline: float | None) -> None:
        with self._lock:
            self._carrier.close()


class AsyncSender:
    """A bounded queue and a thread that empties it. Thread: any.

    The thread is idle -> lingering: something was put; -> sending: ``batch_size`` messages are there, the linger is
    over, or someone flushes; -> idle. ``_wake_at`` is the number of queued messages at which ``put`` must wake it.
    """

    def __init__(self, carrier: Carrier, settings: ProducerSettings, report: Report, clock: Clock) -> None:
        self.accepted = 0
        self._carrier = carrier
        self._clock = clock
        self._settings = settings
        self._report = report
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._batches: list[Batch] = []
        self._n_queued = 0
        self._bytes_queued = 0
        self._wake_at = _NEVER
        self._n_put = 0
        self._n_settled = 0
        self._hurry = False
        self._closing = False
        self._blocked = 0
        self._thread = threading.Thread(target=self._run, name=f"producer to {carrier.address}", daemon=True)
        self._thread.start()

    def put(self, lane: Lane, data: bytes, n: int, forced: bool = False) -> bool:
        settings = self._settings
        with self._lock:
            queued = self._n_queued + n
            size = self._bytes_queued + len(data)
            if queued > settings.queue_size or size > settings.queue_bytes or self._closing:
                if self._closing and forced:
                    return False
                if not forced and not self._wait_for_room(n, len(data)):
                    return False
                queued = self._n_queued + n
                size = self._bytes_queued + len(data)
            self._batches.append((lane, data, n))
            self._n_queued = queued
            self._bytes_queued = size
            self._n_put += n
            if not forced:
                self.accepted += n
            if queued >= self._wake_at:
                self._wake_at = _NEVER
                self._work.notify()
        return True

    def flush(self, deadline: float | None) -> bool:
        with self._lock:
            target = self._n_put
            while self._n_settled < target:
                self._hurry = True
                self._work.notify()
                if not self._room.wait(self._left(deadline)):
                    return False
        return True

    def close(self, deadline: float | None) -> None:
        with self._lock:
            self._closing = True
            self._work.notify()
            self._room.notify_all()
        self._thread.join(self._left(deadline))
        if self._thread.is_alive():
            late = ConnectionFailed("not sent before close() ran out of time")
            self._drop([GivenUp(batch, late) for batch in self._take()])

    # -- waiting, with the lock held ----------------------------------------------------------------------------

    def _wait_for_room(self, n: int, size: int) -> bool:
        """Apply the policy for a full queue; a set larger than the whole queue is let in when the queue is empty."""
        while True:
            if self._closing:
                raise ProducerClosed("the producer was closed; nothing of this set was sent. Make a new Producer")
            room = self._n_queued + n <= self._settings.queue_size
            if not self._n_queued or (room and self._bytes_queued + size <= self._settings.queue_bytes):
                return True
            if self._settings.on_full == "drop":
                return False
            if self._settings.on_full == "raise":
                raise QueueFull(
                    f"the producer's queue to {self._carrier.address} holds {self._n_queued} messages "
                    f"({self._bytes_queued} bytes) and takes no more; nothing of this set was queued, try again later"
                )
            self._blocked += 1
            self._work.notify()
            self._room.wait()
            self._blocked -= 1

    def _wait_for_work(self) -> bool:
        """Sleep until a batch is due; False when closed and empty."""
        while not self._batches:
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
            batches = self._take()
            self._drop(self._carrier.carry(batches))
            with self._lock:
                self._n_settled += sum(n for _, _, n in batches)
                self._room.notify_all()
        self._carrier.close()

    def _take(self) -> list[Batch]:
        with self._lock:
            batches, self._batches = self._batches, []
            self._n_queued = self._bytes_queued = 0
            if self._blocked:
                self._room.notify_all()
        return batches

    def _drop(self, given_up: list[GivenUp]) -> None:
        for (lane, _, n), error in given_up:
            self._report(lane.topic, n, str(error))

    def _left(self, deadline: float | None) -> float | None:
        return None if deadline is None else max(deadline - self._clock.monotonic(), 0)
