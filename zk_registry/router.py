"""Discovery for producers: brokers and partitions out of the broker registry, kept up to date by watches.

Reads are answered from memory. A watch only marks the picture as old; a worker thread draws it again. While ZooKeeper
does not answer, the last picture stays.

Paper: §3.2; docs/producer.md: a topic nobody has announced yet goes to partition 0 of each living broker.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence, Set

from kafka2011.errors import ConnectionFailed
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress, BrokerPartition
from zk_registry.brokers import BrokerRegistry
from zk_registry.operations import RegistryError
from zk_registry.session import ZooKeeperSession
from zk_registry.states import Session, SessionState

_RETRY_S = 1.0


class ZooKeeperRouter:
    """A producer's ``Router`` over ZooKeeper. Thread: any.

    Takes a connect string (and then has its own session), or a session of yours that is started.
    """

    def __init__(self, zookeeper: str | Session, *, timeout_s: float = 6.0, journal: Journal | None = None) -> None:
        self._own: ZooKeeperSession | None = None
        if isinstance(zookeeper, str):
            self._own = ZooKeeperSession(zookeeper, timeout_s=timeout_s, journal=journal)
            self._own.start()
            zookeeper = self._own
        self._session: Session = zookeeper
        self._registry = BrokerRegistry(zookeeper, journal=journal)
        self._lock = threading.Lock()
        self._brokers: dict[int, BrokerAddress] = {}
        self._partitions: dict[str, tuple[BrokerPartition, ...]] = {}
        self._old_topics: set[str] = set()
        self._brokers_old = True
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._end_states = zookeeper.on_state(self._state_changed)
        if not self._look():
            self._wake.set()
        self._worker = threading.Thread(target=self._work, name="zookeeper-router", daemon=True)
        self._worker.start()

    def partitions(self, topic: str) -> Sequence[BrokerPartition]:
        """The partitions of ``topic`` on living brokers, in numeric order; partition 0 of each if nobody has it."""
        with self._lock:
            known = topic in self._partitions
        if not known:
            self._look_at(topic)
        with self._lock:
            brokers = self._brokers
            announced = tuple(p for p in self._partitions.get(topic, ()) if p.broker_id in brokers)
        return announced or tuple(BrokerPartition(broker_id, 0) for broker_id in brokers)

    def holders(self, topic: str) -> Set[int]:
        """The living brokers that have announced ``topic``."""
        with self._lock:
            return {p.broker_id for p in self._partitions.get(topic, ()) if p.broker_id in self._brokers}

    def address(self, broker_id: int) -> BrokerAddress:
        """Where a broker listens; raises ConnectionFailed if it is not alive as far as ZooKeeper knows."""
        with self._lock:
            address = self._brokers.get(broker_id)
        if address is None:
            raise ConnectionFailed(f"broker {broker_id} is not registered in ZooKeeper; it may be restarting")
        return address

    def brokers(self) -> list[BrokerAddress]:
        """The living brokers, in numeric order."""
        with self._lock:
            return list(self._brokers.values())

    def refresh(self) -> None:
        """Read everything again, soon."""
        with self._lock:
            self._brokers_old = True
            self._old_topics.update(self._partitions)
        self._wake.set()

    def close(self) -> None:
        """Stop watching; end the session if it is this router's own."""
        self._closed.set()
        self._wake.set()
        self._end_states()
        if self._own is not None:
            self._own.close()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _state_changed(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self.refresh()

    def _brokers_changed(self, path: str) -> None:
        with self._lock:
            self._brokers_old = True
        self._wake.set()

    def _topic_changed(self, topic: str) -> None:
        with self._lock:
            self._old_topics.add(topic)
        self._wake.set()

    def _work(self) -> None:
        pause_s: float | None = None
        while True:
            self._wake.wait(pause_s)
            self._wake.clear()
            if self._closed.is_set():
                return
            pause_s = None if self._look() else _RETRY_S

    def _look(self) -> bool:
        """Read again what is old; False if ZooKeeper did not answer, and then the last picture stays."""
        with self._lock:
            brokers_old, self._brokers_old = self._brokers_old, False
            topics, self._old_topics = self._old_topics, set()
        try:
            if brokers_old:
                brokers = self._registry.brokers(self._brokers_changed)
                with self._lock:
                    self._brokers = brokers
                brokers_old = False
            while topics:
                self._read_topic(next(iter(topics)))
                topics.pop()
        except RegistryError:
            with self._lock:
                self._brokers_old |= brokers_old
                self._old_topics |= topics
            return False
        return True

    def _look_at(self, topic: str) -> None:
        """A topic asked for the first time is read at once, so that its first message goes where it should."""
        try:
            self._read_topic(topic)
        except RegistryError:
            # ZooKeeper is away: go by the living brokers until the worker has read it.
            with self._lock:
                self._partitions.setdefault(topic, ())
                self._old_topics.add(topic)
            self._wake.set()

    def _read_topic(self, topic: str) -> None:
        partitions = tuple(self._registry.partitions(topic, lambda path: self._topic_changed(topic)))
        with self._lock:
            self._partitions[topic] = partitions
