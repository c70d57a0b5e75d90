"""Wake fetches that wait for messages. See docs/modern-port.md (long polling)."""

from __future__ import annotations

from collections.abc import Collection

from twisted.internet.defer import Deferred

from kafka2011.broker.reactor import Reactor
from kafka2011.log.log import Log
from kafka2011.types import TopicPartition


class DelayedFetches:
    """Who waits for which partition. Thread: reactor."""

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor
        self._waiting: dict[TopicPartition, set[Deferred[None]]] = {}

    async def wait(self, partitions: Collection[TopicPartition], seconds: float) -> None:
        """Return when something was flushed to one of ``partitions``, or after ``seconds``."""
        waiter: Deferred[None] = Deferred()
        for partition in partitions:
            self._waiting.setdefault(partition, set()).add(waiter)
        timer = self._reactor.callLater(seconds, waiter.callback, None)
        try:
            await waiter
        finally:
            if timer.active():
                timer.cancel()
            for partition in partitions:
                waiters = self._waiting[partition]
                waiters.discard(waiter)
                if not waiters:
                    del self._waiting[partition]

    def flushed(self, log: Log) -> None:
        """Messages of a 2011 log became visible."""
        self.wake(log.topic, log.partition)

    def wake(self, topic: str, partition: int) -> None:
        """Something that readers may see has changed in a partition."""
        waiters = self._waiting.get(TopicPartition(topic, partition))
        if waiters:
            for waiter in list(waiters):
                if not waiter.called:
                    waiter.callback(None)

    def wake_all(self) -> None:
        """Leaders or topics have changed: let everybody look again."""
        for partition in list(self._waiting):
            self.wake(partition.topic, partition.partition)

    def __len__(self) -> int:
        return len(self._waiting)
