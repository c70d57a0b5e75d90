"""The broker plug-in that opens the modern port, with the services that are installed.

    start   metadata read -> modern logs opened -> services made -> other brokers read from ZooKeeper -> services
            started -> port listens -> published
    stop    port closed -> services stopped -> modern logs and producers' notes closed

See docs/modern-port.md, docs/group-protocol.md (settings have the names modern brokers give them).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from prometheus_client.registry import Collector
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThread

from kafka2011.broker.addresses import is_loopback
from kafka2011.broker.doors import unguarded_2011
from kafka2011.broker.events import OpenToTheNetwork
from kafka2011.broker.reactor import ListeningPort, every
from kafka2011.config import Config, Setting
from kafka2011.errors import ConfigError
from kafka2011.types import BrokerAddress
from since2011.server.connection import ModernProtocol
from since2011.server.controllership import SETTINGS as CONTROLLER_SETTINGS
from since2011.server.events import ClusterChanged, ModernPortOpened
from since2011.server.listener import listen
from since2011.server.logs import SETTINGS as LOG_SETTINGS
from since2011.server.metadata_store import SETTINGS as STORE_SETTINGS
from since2011.server.metadata_store import open_store
from since2011.server.replication import SETTINGS as REPLICATION_SETTINGS
from since2011.server.service import ModernBroker
from since2011.server.services import Service, installed, settings_of_services
from since2011.server.users import Users
from since2011.topics.administration import SETTINGS as TOPIC_SETTINGS
from since2011.topics.cluster_watch import ClusterWatch, Seen
from since2011.topics.topic_counts import TopicCounts
from zk_registry.broker_plugin import ZooKeeperPlugin

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

_SECTION = "modern port (not in 2011)"
DIRECTORY = ".modern"
"""Below the log directory, where the 2011 store looks for no topics."""
HOUSEKEEPING_S = 60.0


def _ms(name: str, default: int, help: str) -> Setting:
    return Setting(name, int, default, "ms", help, _SECTION, minimum=0)


class ModernPlugin:
    """Today's protocol beside the paper's. Thread: reactor."""

    SETTINGS: ClassVar[tuple[Setting, ...]] = (
        Setting("modern.bind.address", str, None, "", "Address the modern port listens on.", _SECTION,
                inherit="bind.address"),
        Setting("modern.host", str, None, "", "Address told to modern clients; unset: hostname, else "
                "modern.bind.address, "
                "else whatever address a client has reached.", _SECTION),
        Setting("modern.advertised.port", int, None, "", "Port told to modern clients, where it is not the one "
                "listened on (a container, a tunnel).", _SECTION, minimum=1, maximum=65535),
        Setting("modern.sasl.users", Path, None, "", "File of user:password lines; with it, modern clients must log in "
                "(SCRAM-SHA-256; over TLS also PLAIN).", _SECTION),
        Setting("auto.create.topics.enable", bool, True, "", "Create a topic when a modern client that allows it asks "
                "about it or produces to it.", _SECTION),
        Setting("max.untaken.answer.bytes", int, 128 << 20, "bytes", "Answers that modern clients asked for and have "
                "not read; over it, who has left one unread for longest is closed.", _SECTION, minimum=1 << 20),
        Setting("max.incremental.fetch.session.cache.slots", int, 1000, "sessions", "Readers of many partitions that "
                "name only what has changed since their last fetch; others name everything.", _SECTION, minimum=0),
        Setting("max.producer.ids", int, 20_000, "producers", "Idempotent producers remembered, each partition they "
                "write to counted; over it, who wrote longest ago is forgotten.", _SECTION, minimum=1),
        _ms("producer.id.expiration.ms", 86_400_000, "How long an idempotent producer that does not write is "
            "remembered."),
        Setting("log.format", str, "modern", "", "Of which kind topics are that are made because somebody asks about "
                "them on the modern port: modern, or 2011 (byte offsets, no keys).", _SECTION,
                choices=("modern", "2011")),
        *STORE_SETTINGS,
        *TOPIC_SETTINGS,
        *LOG_SETTINGS,
        *REPLICATION_SETTINGS,
        *CONTROLLER_SETTINGS,
        *settings_of_services(),
    )  # fmt: skip

    @classmethod
    def wanted(cls, config: Config) -> bool:
        """Whether a port is set."""
        return config["modern.port"] is not None

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._directory = broker.config.get("log.dir", Path) / DIRECTORY
        users = broker.config["modern.sasl.users"]
        self._users = Users.read(users) if isinstance(users, Path) else None
        unguarded = unguarded_2011(broker.config)
        if self._users is not None and unguarded is not None:
            raise ConfigError(
                f"modern.sasl.users asks modern clients for a login, but the 2011 port at {unguarded} would let "
                "anybody publish and fetch without one: set port.access=loopback or off, or let tls.client.ca guard it"
            )
        # Before the logs are opened: how many partitions a topic has decides which of them are served.
        self._counts = TopicCounts(self._directory / "topics.json", broker.store)
        self._modern: ModernBroker | None = None
        self._port: ListeningPort | None = None
        self._watch: ClusterWatch | None = None
        self._housekeeping: LoopingCall | None = None
        self._services: list[Service] = []

    # Life

    def start(self) -> Deferred[None]:
        """Open the port; fires when clients may come."""
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> None:
        broker = self._broker
        self._directory.mkdir(mode=0o700, exist_ok=True)
        store = open_store(broker, self._directory)
        await deferToThread(store.start)
        modern = self._modern = ModernBroker(broker, self._directory, self._counts, self._users, store)
        await modern.logs.start()
        await modern.topics.start()
        modern.replication.start()
        self._services = [service(modern) for service in installed().values()]
        modern.offer(self._services)
        zookeeper = broker.plugins.get("zookeeper")
        if isinstance(zookeeper, ZooKeeperPlugin):
            self._watch = ClusterWatch(zookeeper.registry, broker.reactor, self._cluster_seen)
            await self._watch.start()
        for service in self._services:
            await service.start()
        self._port = listen(modern, broker.config.integer("modern.port"))
        modern.address = self._advertised(self._port.getHost().port)
        modern.changed()
        rack = broker.config["broker.rack"]
        host = modern.address.host or broker.address.host
        if isinstance(zookeeper, ZooKeeperPlugin):
            host = zookeeper.reachable(host)
        await modern.topics.register(host, modern.address.port, None if rack is None else str(rack))
        if modern.controllership is not None:
            modern.controllership.start()
        if isinstance(zookeeper, ZooKeeperPlugin):
            zookeeper.publish_modern(f"{modern.address.host}:{modern.address.port}")
        self._housekeeping = every(broker.reactor, HOUSEKEEPING_S, modern.intake.maybe_compact)
        reached, sasl = modern.address.host or "any address", self._users is not None
        broker.journal.emit(ModernPortOpened(host=reached, port=modern.address.port, tls=modern.tls, sasl=sasl))
        bind = str(broker.config["modern.bind.address"])
        if not (sasl or is_loopback(bind) or broker.config["tls.client.ca"]):
            broker.journal.emit(OpenToTheNetwork(door="modern port", address=bind))

    def _advertised(self, port: int) -> BrokerAddress:
        address = self._broker.address
        config = self._broker.config
        host = str(config["modern.host"] or config["hostname"] or config["modern.bind.address"])
        told = config["modern.advertised.port"]
        reachable = "" if host in ("0.0.0.0", "::") else host  # noqa: S104 - compared, not bound
        return BrokerAddress(address.broker_id, reachable, told if isinstance(told, int) else port)

    def topic_created(self, topic: str, n_partitions: int) -> None:
        """Clients see it from now on."""
        if self._modern is not None:
            self._modern.topic_created(topic, n_partitions)

    def stop(self) -> Deferred[None]:
        """Close the port, then the files."""
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        if self._modern is None:
            return
        if self._port is not None:
            await self._modern.replication.leave()
        if self._modern.controllership is not None:
            await self._modern.controllership.stop()
        if self._watch is not None:
            self._watch.stop()
        if self._port is not None:
            await (self._port.stopListening() or succeed(None))
        for connection in self._broker.limits:
            if isinstance(connection, ModernProtocol):
                connection.drop("shutdown", "the broker stops")
        if self._housekeeping is not None and self._housekeeping.running:
            self._housekeeping.stop()
        for service in self._services:
            await service.stop()
        self._modern.replication.stop()
        await self._modern.topics.stop()
        await self._modern.logs.stop()
        self._modern.close()
        self._modern.logins.stop()

    # The cluster

    def _cluster_seen(self, seen: Seen) -> None:
        """Other brokers, or their topics, are not what they were."""
        modern = self._modern
        assert modern is not None
        before = set(modern.view().brokers)
        modern.cluster_changed(*seen)
        live = set(modern.view().brokers)
        if live == before:
            return
        self._broker.journal.emit(ClusterChanged(brokers=tuple(sorted(live))))
        for service in self._services:
            service.brokers_changed()

    def state(self) -> dict[str, Any]:
        """Port and producers, and what the services show."""
        if self._modern is None or self._port is None:
            return {"port": None}
        address, recent = self._modern.address, self._modern.intake.recent
        shown: dict[str, Any] = {
            "host": address.host,
            "port": self._port.getHost().port,
            "advertised_port": address.port,
            "producers": {"remembered": len(recent), "forgotten": recent.n_forgotten},
            "brokers": sorted(self._modern.view().brokers),
            "logs": self._modern.logs.state(),
            "replicas": self._modern.replication.manager.describe(),
        }
        for service in self._services:
            shown |= service.state()
        return shown

    def trouble(self) -> str | None:
        """What keeps a service from its work, or a log."""
        if self._modern is not None and (trouble := self._modern.logs.trouble()) is not None:
            return trouble
        return next((trouble for service in self._services if (trouble := service.trouble()) is not None), None)

    def collectors(self) -> list[Collector]:
        """The metrics of the modern logs, of replicas, and of the controller."""
        if self._modern is None:
            return []
        controllership = self._modern.controllership
        if controllership is None:
            return self._modern.logs.collectors()
        others = (self._modern.replication, controllership)
        return [*self._modern.logs.collectors(), *(one for part in others for one in part.collectors())]
