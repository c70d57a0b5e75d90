"""Wake fetches that wait for messages. Spec: modern-group-protocol §1.6 (long polling)."""

from __future__ import annotations

from collections.abc import Collection

from twisted.internet.defer import Deferred

from kafka2011.broker.reactor import Reactor
from kafka2011.log.log import Log
from kafka2011.types import TopicPartition


class Arrivals:
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
        """Messages of ``log`` became visible."""
        for waiter in list(self._waiting.get(TopicPartition(log.topic, log.partition), ())):
            if not waiter.called:
                waiter.callback(None)

    def __len__(self) -> int:
        return len(self._waiting)
