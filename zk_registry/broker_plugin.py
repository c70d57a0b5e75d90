"""What a broker does with ZooKeeper: register, announce new topics, register again after expiry, leave.

One worker thread does all of it; the reactor never waits for ZooKeeper, and the broker serves whether or not ZooKeeper
answers. At the start it must answer once: a broker nobody can find would be of no use.

Paper: §3.2.
"""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from twisted.internet.defer import Deferred

from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.config import Config, Setting
from kafka2011.errors import ConfigError, Kafka2011Error
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress
from zk_registry.access import access_of
from zk_registry.brokers import BrokerRegistry
from zk_registry.events import BrokerDeregistered, RegistrationDelayed
from zk_registry.operations import ConnectionLoss, RegistryError, SessionExpired
from zk_registry.registration import BrokerIdTaken, Registration
from zk_registry.session import ZooKeeperSession

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

_SECTION = "ZooKeeper (§3.2)"
_START_PATIENCE_S = 60.0
_RETRY_S = 0.2
_MAX_RETRY_S = 2.0


class ZooKeeperPlugin:
    """The broker's registration. Thread: reactor; the work is done in its own."""

    SETTINGS: ClassVar[tuple[Setting, ...]] = (
        Setting("zk.sessiontimeout.ms", int, 6000, "ms", "How long ZooKeeper keeps the broker registered without "
                "hearing from it.", _SECTION, minimum=100),
        Setting("zk.connectiontimeout.ms", int, None, "ms", "How long to try to reach ZooKeeper at the start.",
                _SECTION, minimum=1, inherit="zk.sessiontimeout.ms"),
        Setting("zk.synctime.ms", int, 2000, "ms", "How far a ZooKeeper follower may lag. Used by consumers; accepted "
                "here because 0.7's files have it.", _SECTION, minimum=0),
        Setting("zk.credential.file", Path, None, "", "File with user:password. The broker's nodes are then writable "
                "with it only, and readable by all (not in 2011).", _SECTION),
        Setting("zk.tls", bool, False, "", "Speak TLS to ZooKeeper, which must show a certificate for the host name of "
                "zk.connect (not in 2011). Also on when one of the files below is set.", _SECTION),
        Setting("zk.tls.ca", Path, None, "", "PEM file of the authority behind ZooKeeper's certificate: then no "
                "other is trusted; unset: those of the system.", _SECTION),
        Setting("zk.tls.certificate", Path, None, "", "PEM file with this broker's certificate.", _SECTION),
        Setting("zk.tls.key", Path, None, "", "PEM file with the key of zk.tls.certificate.", _SECTION),
    )

    @classmethod
    def wanted(cls, config: Config) -> bool:
        return bool(config["zk.connect"]) and config["enable.zookeeper"] is not False

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._config = broker.config
        self._connect = self._config.get("zk.connect", str)
        if ":" in broker.address.host:
            raise ConfigError(
                f"hostname {broker.address.host!r} cannot be registered: 0.7's readers split the entry at colons; "
                "set hostname to a name or an IPv4 address"
            )
        self.elects = False
        """Whether another plug-in holds the broker's own node, by an election in this session."""
        self._session = session_of(self._config, journal=broker.journal, create_chroot=True)
        self.registry = BrokerRegistry(self._session, journal=broker.journal)
        self._registration: Registration | None = None
        self._is_registered = False
        self._modern: str | None = None
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._started: Deferred[None] = Deferred()
        self._worker = threading.Thread(target=self._work, name="zookeeper-registration", daemon=True)

    @property
    def session(self) -> ZooKeeperSession:
        """The session whose nodes are this broker's."""
        return self._session

    def start(self) -> Deferred[None]:
        """Register; fires when that is done, fails if ZooKeeper cannot be reached or the id is taken."""
        address = self._broker.address
        address = BrokerAddress(address.broker_id, self.reachable(address.host), address.port)
        self._registration = Registration(
            self._session,
            address,
            started_ms=SYSTEM_CLOCK.wall_ms(),
            journal=self._broker.journal,
            on_doubt=self._wake.set,
            has_id=self.elects,
        )
        for topic in self._broker.store.topics():
            self._registration.announce(topic, self._broker.store.partition_count(topic))
        if self._modern is not None:
            self._registration.publish_modern(self._modern)
        if self._broker.admin_port is not None:
            listens = self._config.get("admin.address", str)
            host = address.host if listens == "0.0.0.0" else listens  # noqa: S104 - compared, not bound
            self._registration.publish_admin(f"{host}:{self._broker.admin_port}")
        self._session.on_state(lambda state: self._wake.set())
        self._worker.start()
        return self._started

    def topic_created(self, topic: str, n_partitions: int) -> None:
        """Announce a topic soon."""
        if self._registration is not None:
            self._registration.announce(topic, n_partitions)
            self._wake.set()

    def publish_modern(self, address: str) -> None:
        """Tell where this broker speaks today's protocol (``host:port``)."""
        host, _, port = address.rpartition(":")
        self._modern = address = f"{self.reachable(host)}:{port}"
        if self._registration is not None:
            self._registration.publish_modern(address)
            self._wake.set()

    def stop(self) -> Deferred[None]:
        """Leave the registry at once; fires when done."""
        stopped: Deferred[None] = Deferred()
        self._stopping.set()
        self._wake.set()
        threading.Thread(target=self._leave, args=(stopped,), name="zookeeper-leave", daemon=True).start()
        return stopped

    def state(self) -> dict[str, Any]:
        registration = self._registration
        return {
            "connect": self._connect,
            "state": self._session.state.value,
            "trouble": self.trouble(),
            "session_id": f"{self._session.session_id:#x}",
            "incarnation": self._session.incarnation,
            "registered": registration is not None and registration.is_complete,
            "topics": registration.n_topics if registration is not None else 0,
        }

    def trouble(self) -> str | None:
        """Why the registry cannot be reached, once the broker was registered in it."""
        return self._session.trouble if self._is_registered else None

    def collectors(self) -> tuple[()]:
        """It has no metrics."""
        return ()

    def reachable(self, host: str) -> str:
        """What to tell others: a broker that listens on every address is found at the one ZooKeeper sees."""
        return _own_address(self._connect) if host in ("0.0.0.0", "") else host  # noqa: S104 - compared, not bound

    # -- the worker's side ----------------------------------------------------------------------------------------

    def _work(self) -> None:
        assert self._registration is not None
        try:
            self._session.start()
        except Exception as error:
            # Whatever it is, the one who starts the broker must hear of it.
            self._in_reactor(self._started.errback, error)
            return
        give_up = SYSTEM_CLOCK.monotonic() + _START_PATIENCE_S
        pause_s: float | None = None
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self._registration.reconcile()
                pause_s = None
                if not self._is_registered:
                    self._is_registered = True
                    self._in_reactor(self._started.callback, None)
            except (RegistryError, BrokerIdTaken) as error:
                passes = isinstance(error, ConnectionLoss | SessionExpired) and SYSTEM_CLOCK.monotonic() < give_up
                if not self._is_registered and not passes:
                    self._in_reactor(self._started.errback, error)
                    return
                if pause_s is None and not self._stopping.is_set():
                    self._broker.journal.emit(RegistrationDelayed(reason=str(error)))
                # Everyone comes back at once after an outage; the jitter spreads them.
                pause_s = min(_MAX_RETRY_S, (pause_s or _RETRY_S) * (1.5 + random.random()))
            self._wake.wait(pause_s)
        if not self._is_registered:
            self._in_reactor(self._started.errback, Kafka2011Error("stopped before it was registered in ZooKeeper"))

    def _leave(self, stopped: Deferred[None]) -> None:
        self._session.close()
        if self._worker.is_alive():
            self._worker.join(2.0)
        if self._is_registered:
            self._broker.journal.emit(BrokerDeregistered(broker_id=self._broker.address.broker_id))
        self._in_reactor(stopped.callback, None)

    def _in_reactor(self, call: Callable[[Any], None], argument: object) -> None:
        self._broker.reactor.callFromThread(call, argument)


def session_of(config: Config, *, journal: Journal | None = None, create_chroot: bool = False) -> ZooKeeperSession:
    """A session as a broker's settings describe it, not started yet."""
    return ZooKeeperSession(
        config.get("zk.connect", str),
        timeout_s=config.integer("zk.sessiontimeout.ms") / 1000,
        connect_timeout_s=config.integer("zk.connectiontimeout.ms") / 1000,
        journal=journal,
        access=access_of(config),
        create_chroot=create_chroot,
    )


def _own_address(connect: str) -> str:
    """The address of this machine on the way to ZooKeeper: what to tell others when listening on all addresses."""
    host, _, port = connect.partition("/")[0].split(",")[0].strip().partition(":")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, int(port or 2181)))  # a datagram socket sends nothing by connecting
            name: str = probe.getsockname()[0]
            return name
    except (OSError, ValueError) as error:
        raise Kafka2011Error(
            f"bind.address is every address, and which one to register cannot be told ({error}); set hostname"
        ) from error
