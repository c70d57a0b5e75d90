"""Keep the view of the other brokers fresh, from the registries in ZooKeeper.

Reading happens in a thread; a watch only says "look again". Paper: §3.2.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from kafka2011.broker.reactor import DelayedCall, Reactor
from kafka2011.types import BrokerAddress, BrokerPartition
from zk_registry.brokers import BrokerRegistry
from zk_registry.operations import RegistryError

RETRY_S = 1.0
Seen = tuple[dict[int, BrokerAddress], dict[str, tuple[BrokerPartition, ...]]]


class ClusterWatch:
    """Read brokers and topics, and again whenever a watch fires. Thread: reactor; the reading is done in others."""

    def __init__(self, registry: BrokerRegistry, reactor: Reactor, seen: Callable[[Seen], None]) -> None:
        self._registry, self._reactor, self._seen = registry, reactor, seen
        self._reading = self._again = self._stopped = False
        self._retry: DelayedCall | None = None

    def start(self) -> Deferred[None]:
        """Fire after the first look."""
        self._reading = True
        return deferToThread(self._read).addCallbacks(self._found, self._lost)

    def stop(self) -> None:
        """Look no more."""
        self._stopped = True
        if self._retry is not None and self._retry.active():
            self._retry.cancel()

    def _read(self) -> Seen:
        brokers = self._registry.modern_addresses(self._watched)
        topics = self._registry.topics(self._watched)
        return brokers, {topic: self._registry.row(topic, self._watched) for topic in topics}

    def _watched(self, _path: str) -> None:
        self._reactor.callFromThread(self._look)

    def _look(self) -> None:
        if self._stopped or self._reading:
            self._again = True
            return
        self.start()

    def _found(self, seen: Seen) -> None:
        self._reading = False
        if self._stopped:
            return
        self._seen(seen)
        if self._again:
            self._again = False
            self._look()

    def _lost(self, failure: Failure) -> None:
        """ZooKeeper does not answer: what was seen last stands until it does."""
        failure.trap(RegistryError)
        self._reading = self._again = False
        if not self._stopped:
            self._retry = self._reactor.callLater(RETRY_S, self._look)
