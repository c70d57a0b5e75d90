"""Where records wait until they are sent: a queue of batches for each partition, within a bound of memory. No I/O.

A batch is ready when it is full, when another follows it, when it has waited ``linger.ms``, when somebody waits for
memory or for all to be sent. A broker gets the first batch of each of its partitions in one request: where one of them
is ready, the others go along.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from since2011.client.metadata import TopicPlaces
from since2011.producer.batch import Batch, PartitionQueue
from since2011.producer.delivery import Delivery, OnDelivery
from since2011.producer.record import Row

MaySend = Callable[[PartitionQueue, Batch], bool]


class Accumulator:
    """All batches of a producer that are not settled. Under its producer's lock; time is an argument."""

    def __init__(self, *, batch_size: int, linger_s: float, memory: int) -> None:
        self.batch_size, self.linger_s, self.memory = batch_size, linger_s, memory
        self.free = memory
        self.waiting = 0
        """Threads that wait for memory."""
        self.flushing = 0
        """Threads that wait until all is sent."""
        self.closing = False
        self.queues: dict[str, list[PartitionQueue]] = {}
        self.incomplete: dict[Batch, None] = {}
        """Every batch that is not settled, the oldest first."""
        self._active: dict[PartitionQueue, None] = {}
        """The queues with batches, in the order in which they are served."""

    def place(self, topic: str, places: TopicPlaces) -> list[PartitionQueue]:
        """Take over where a topic's partitions are led; its queues."""
        queues = self.queues.setdefault(topic, [])
        while len(queues) < len(places.leaders):
            queues.append(PartitionQueue(topic, len(queues)))
        for queue, leader in zip(queues, places.leaders, strict=False):
            queue.leader = leader
        return queues

    # -- taking ---------------------------------------------------------------------------------------------------

    def has_memory(self, size: int) -> bool:
        """Whether a batch can begin with a record of ``size`` bytes."""
        return self.free >= (size if size > self.batch_size else self.batch_size)

    def extend(self, queue: PartitionQueue, row: Row, size: int, callback: OnDelivery | None) -> Delivery | None:
        """Add a record to the batch that is being filled; None if there is none, or it is full."""
        batches = queue.batches
        if not batches:
            return None
        batch = batches[-1]
        if batch.closed:
            return None
        if batch.size + size > self.batch_size:
            batch.closed = True
            return None
        rows = batch.rows
        delivery = Delivery(batch, len(rows), row[0])
        rows.append(row)
        batch.deliveries.append(delivery)
        batch.size += size
        if callback is not None:
            batch.callbacks.append((delivery, callback))
        return delivery

    def begin(self, queue: PartitionQueue, row: Row, size: int, callback: OnDelivery | None, now: float) -> Delivery:
        """Add a record as the first of a batch, for which there is memory."""
        need = size if size > self.batch_size else self.batch_size
        assert need <= self.free, "nobody asked whether there is room"
        self.free -= need
        batch = Batch(queue, now, need)
        delivery = Delivery(batch, 0, row[0])
        batch.rows.append(row)
        batch.deliveries.append(delivery)
        batch.size = size
        if callback is not None:
            batch.callbacks.append((delivery, callback))
        queue.batches.append(batch)
        self.incomplete[batch] = None
        self._active[queue] = None
        return delivery

    def close(self) -> None:
        """Take nothing more; what is here is sent at once."""
        self.closing = True
        for queue in self._active:
            queue.batches[-1].closed = True

    # -- sending --------------------------------------------------------------------------------------------------

    def ready_at(self, queue: PartitionQueue, now: float) -> float:
        """When the first batch of a queue may be sent."""
        first = queue.batches[0]
        if first.attempts:
            return queue.retry_at
        hurry = len(queue.batches) > 1 or first.closed or first.size >= self.batch_size
        if hurry or self.waiting or self.flushing or self.closing:
            return now
        return first.created + self.linger_s

    def active(self) -> Iterable[PartitionQueue]:
        """The queues with batches."""
        return self._active

    def drain(self, queues: Iterable[PartitionQueue], limit: int, now: float, may_send: MaySend) -> Iterator[Batch]:
        """Take the first batch of each queue, until ``limit`` bytes are together; never less than one.

        A queue that was served goes to the end, so that no partition waits for ever behind the others.
        """
        size = 0
        for queue in queues:
            first = queue.batches[0]
            if (first.attempts and queue.retry_at > now) or not may_send(queue, first):
                continue
            if size and size + first.size > limit:
                return
            size += first.size
            queue.batches.popleft()
            del self._active[queue]
            if queue.batches:
                self._active[queue] = None
            first.closed = first.sent = True
            yield first

    def put_back(self, queue: PartitionQueue, batch: Batch) -> None:
        """A batch that goes first again, where order is not kept by sequences."""
        queue.batches.appendleft(batch)
        self._active[queue] = None

    def activate(self, queue: PartitionQueue) -> None:
        """A queue got batches otherwise."""
        self._active[queue] = None

    # -- settling -------------------------------------------------------------------------------------------------

    def replace(self, batch: Batch, parts: Iterable[Batch]) -> None:
        """A batch was split; its parts share its memory."""
        del self.incomplete[batch]
        left = batch.reserved
        for part in parts:
            part.reserved, left = left, 0
            self.incomplete[part] = None

    def settled(self, batch: Batch) -> None:
        """A batch is stored or given up: its memory is free again."""
        if self.incomplete.pop(batch, 0) is None:
            self.free += batch.reserved

    def expired(self, now: float, delivery_timeout_s: float) -> list[Batch]:
        """The batches that are not settled in time, the oldest first."""
        found = []
        for batch in self.incomplete:
            if now - batch.created < delivery_timeout_s:
                break
            found.append(batch)
        return found

    def next_expiry(self, delivery_timeout_s: float) -> float:
        """When the oldest batch runs out of time."""
        for batch in self.incomplete:
            return batch.created + delivery_timeout_s
        return math.inf

    def withdraw(self, batch: Batch) -> None:
        """Take a batch out of its queue, if it is there."""
        queue = batch.queue
        if batch in queue.batches:
            queue.batches.remove(batch)
            if not queue.batches:
                self._active.pop(queue, None)

    def waiting_batches(self, topic: str, available: Iterable[int]) -> list[int]:
        """How many batches wait for each of these partitions."""
        queues = self.queues[topic]
        return [len(queues[partition].batches) for partition in available]
