"""One broker's entries in the registry: what it wants to be there, and how it gets there.

The registration is level-triggered: ``reconcile`` compares what is wanted with what was written in the present session
and writes the difference. A new topic, a lost answer and an expired session are all the same case; so is a node that
somebody deleted by hand: each is watched, and looked at again when its watch fires.

When a node is there already, its owner decides:

    our session         the answer to an earlier attempt was lost: it is ours
    our own last life   wait: that session is dead and takes its nodes along when it times out
    a stranger          never touched. If it answers at its address, this broker has the wrong id and is told so; if it
                        does not, it may be dead, and is waited for as long

Paper: §3.2, "the broker registry ... if a broker fails, all partitions on it are automatically removed".
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress
from zk_registry import paths
from zk_registry.brokers import encode_broker, parse_broker
from zk_registry.events import BrokerRegistered, NodeTakenOut, OldRegistrationAwaited, TopicAnnounced
from zk_registry.operations import Create, Get, Node, NodeExists, NoNode, RegistryError, Set
from zk_registry.states import Session

POLL_S = 0.1


class BrokerIdTaken(Kafka2011Error):
    """Another broker has this id; ids are unique in a cluster."""


def answers(address: BrokerAddress) -> bool:
    """Whether someone listens there."""
    try:
        with socket.create_connection((address.host, address.port), timeout=1.0):
            return True
    except OSError:
        return False


class Registration:
    """The nodes of one broker. Thread: one worker, except ``announce`` and ``publish_…`` (any)."""

    def __init__(
        self,
        session: Session,
        address: BrokerAddress,
        *,
        started_ms: int,
        journal: Journal | None = None,
        clock: Clock = SYSTEM_CLOCK,
        is_alive: Callable[[BrokerAddress], bool] = answers,
        on_doubt: Callable[[], None] = lambda: None,
        has_id: bool = False,
    ) -> None:
        """``on_doubt`` is called, in any thread, when ``reconcile`` may have something to do.

        With ``has_id`` the broker's own node is held already, by somebody who was elected in this session.
        """
        self._session, self._address = session, address
        self._journal, self._clock, self._is_alive = journal or Journal(), clock, is_alive
        self._id_path = paths.broker_id(address.broker_id)
        self._lock = threading.Lock()
        self._wanted: dict[str, bytes] = {self._id_path: encode_broker(address.host, address.port, started_ms)}
        if has_id:
            del self._wanted[self._id_path]
        self._topics: dict[str, int] = {}
        self._written: dict[str, bytes] = {}
        self._doubted: set[str] = set()
        """Written, but perhaps not there any more, or not watched."""
        self._on_doubt = on_doubt
        self._incarnation = 0

    @property
    def is_complete(self) -> bool:
        """Whether everything wanted is there, as far as anyone can know."""
        with self._lock:
            return self._incarnation == self._session.incarnation and self._written == self._wanted

    @property
    def n_topics(self) -> int:
        return len(self._topics)

    def announce(self, topic: str, n_partitions: int) -> None:
        """Want this topic to be there, with all its partitions at once."""
        with self._lock:
            self._topics[topic] = n_partitions
            self._wanted[paths.topic_on_broker(topic, self._address.broker_id)] = b"%d" % n_partitions

    def publish_modern(self, address: str) -> None:
        """Want the address (``host:port``) of today's protocol to be there."""
        with self._lock:
            self._wanted[paths.modern_address(self._address.broker_id)] = address.encode()

    def publish_admin(self, address: str) -> None:
        """Want the address (``host:port``) of the read-only HTTP to be there."""
        with self._lock:
            self._wanted[paths.admin_address(self._address.broker_id)] = address.encode()

    def reconcile(self) -> None:
        """Write what is missing, the broker's id first; raise a RegistryError or BrokerIdTaken if it cannot be."""
        incarnation = self._session.incarnation
        if incarnation != self._incarnation:
            # A new session: nothing of the last one is there.
            self._written, self._incarnation = {}, incarnation
        with self._lock:
            doubted = sorted(self._doubted)
        for path in doubted:
            with self._lock:
                self._doubted.discard(path)
            if path in self._written and not self._holds(path, self._written[path]):
                self._journal.emit(NodeTakenOut(path=path))
                with self._lock:
                    del self._written[path]
        with self._lock:
            missing = {path: value for path, value in self._wanted.items() if self._written.get(path) != value}
        for path, value in missing.items():
            self._put(path, value)
            with self._lock:
                self._written[path] = value
            self._tell(path)
            if not self._holds(path, value):
                self._doubt(path)

    def _holds(self, path: str, value: bytes) -> bool:
        """Whether the node is there as we want it; from now on it is watched."""
        try:
            node: Node = self._session.perform(Get(path, watch=True), self._doubt)
        except NoNode:
            return False
        except RegistryError:
            with self._lock:
                self._doubted.add(path)
            raise
        return node.ephemeral_owner == self._session.session_id and node.value == value

    def _doubt(self, path: str) -> None:
        with self._lock:
            self._doubted.add(path)
        self._on_doubt()

    def _put(self, path: str, value: bytes) -> None:
        deadline: float | None = None
        while True:
            try:
                self._session.perform(Create(path, value, ephemeral=True, make_parents=True))
                return
            except NodeExists:
                try:
                    node: Node = self._session.perform(Get(path))
                except NoNode:
                    continue  # gone in between
            if node.ephemeral_owner == self._session.session_id:
                if node.value != value:
                    self._session.perform(Set(path, value))
                return
            now = self._clock.monotonic()
            if deadline is None:
                patience_s = self._patience_s(path, node)
                deadline = now + patience_s
                if patience_s:
                    self._journal.emit(OldRegistrationAwaited(path=path, up_to_s=patience_s))
            if now >= deadline:
                raise BrokerIdTaken(self._clash(path, node))
            self._clock.sleep(POLL_S)

    def _patience_s(self, path: str, node: Node) -> float:
        """How long the owner of a node may need to die; 0 if it lives."""
        holder = parse_broker(str(self._address.broker_id), node.value) if path == self._id_path else None
        is_us = holder is not None and (holder.host, holder.port) == (self._address.host, self._address.port)
        if holder is not None and not is_us and self._is_alive(holder):
            return 0.0
        # A server with the usual tick of 2 s keeps no session for less than 4 s and ends it up to a tick late.
        return max(self._session.timeout_s, 4.0) + 3.0

    def _clash(self, path: str, node: Node) -> str:
        creator = node.value.split(b":")[0].decode("utf-8", "replace")
        holder = parse_broker(str(self._address.broker_id), node.value) if path == self._id_path else None
        started = creator.rpartition("-")[2]
        when = ""
        if started.isascii() and started.isdigit() and len(started) == 13:
            when = time.strftime(", started %Y-%m-%d %H:%M:%S UTC", time.gmtime(int(started) / 1000))
        where = f"{holder.host}:{holder.port}" if holder else repr(node.value[:100].decode("utf-8", "replace"))
        return (
            f"broker id {self._address.broker_id} is taken: {path} is held by {where}{when} "
            f"(session {node.ephemeral_owner:#x}); give this broker another brokerid, or stop that one"
        )

    def _tell(self, path: str) -> None:
        if path == self._id_path:
            self._journal.emit(
                BrokerRegistered(
                    broker_id=self._address.broker_id,
                    host=self._address.host,
                    port=self._address.port,
                    n_topics=len(self._topics),
                    incarnation=self._incarnation,
                )
            )
        elif path.startswith(paths.BROKER_TOPICS):
            topic = path.split("/")[-2]
            self._journal.emit(TopicAnnounced(topic=topic, n_partitions=self._topics[topic]))
