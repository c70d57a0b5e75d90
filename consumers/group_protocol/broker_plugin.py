"""The broker plug-in that opens the modern port: codec, coordinator, offsets log and bridge put together.

    start   offsets log opened -> other brokers and copies of offsets read from ZooKeeper -> port listens -> published
    stop    port closed -> what is being flushed ends -> the last offsets are copied -> log and producers' notes closed

Spec: modern-group-protocol §1, §11, §13 (settings have the names modern brokers give them).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import LoopingCall

from consumers.group_protocol.cluster_watch import ClusterWatch, Seen
from consumers.group_protocol.connection import ModernProtocol
from consumers.group_protocol.coordinator.service import GroupCoordinator
from consumers.group_protocol.coordinator.settings import GroupSettings
from consumers.group_protocol.copier import Copier
from consumers.group_protocol.events import ClusterChanged, ModernPortOpened
from consumers.group_protocol.group_service import GroupService
from consumers.group_protocol.group_state import describe
from consumers.group_protocol.listener import listen
from consumers.group_protocol.offices import Offices
from consumers.group_protocol.offsets_log import N_PARTITIONS, OffsetsLog
from consumers.group_protocol.service import Modern
from consumers.group_protocol.topic_counts import TopicCounts
from consumers.group_protocol.users import Users
from kafka2011.broker.addresses import is_loopback
from kafka2011.broker.doors import unguarded_2011
from kafka2011.broker.events import OpenToTheNetwork
from kafka2011.broker.reactor import ListeningPort, every
from kafka2011.config import Config, Setting
from kafka2011.errors import ConfigError
from kafka2011.types import BrokerAddress
from zk_registry.broker_plugin import ZooKeeperPlugin, session_of

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
        Setting("max.producer.ids", int, 20_000, "producers", "Idempotent producers remembered, each partition they "
                "write to counted; over it, who wrote longest ago is forgotten.", _SECTION, minimum=1),
        _ms("producer.id.expiration.ms", 86_400_000, "How long an idempotent producer that does not write is "
            "remembered."),
        _ms("group.min.session.timeout.ms", 6_000, "Shortest session a member may ask for."),
        _ms("group.max.session.timeout.ms", 1_800_000, "Longest session a member may ask for."),
        _ms("group.initial.rebalance.delay.ms", 3_000, "How long an empty group waits for more members."),
        Setting("group.max.size", int, 10_000, "members", "Most members of one group.", _SECTION, minimum=1),
        Setting("group.member.max.bytes", int, 262_144, "bytes", "Most a member may bring to its group: subscriptions, "
                "names.", _SECTION, minimum=1),
        Setting("group.max.bytes", int, 16 << 20, "bytes", "Most the members of one group may bring together, with "
                "what they are assigned.", _SECTION, minimum=1),
        Setting("groups.max.bytes", int, 64 << 20, "bytes", "Most this broker keeps of all groups; newcomers are told "
                "to come back later.", _SECTION, minimum=1),
        Setting("groups.offsets.max.bytes", int, 128 << 20, "bytes", "Most this broker keeps of committed offsets, "
                "about 700 bytes each beside the note; more are refused.", _SECTION, minimum=1),
        Setting("offset.metadata.max.bytes", int, 4_096, "bytes", "Longest note beside a committed offset.", _SECTION,
                minimum=0),
        Setting("offsets.retention.minutes", int, 10_080, "minutes", "How long the offsets of an empty group are kept.",
                _SECTION, minimum=1),
        _ms("offsets.retention.check.interval.ms", 600_000, "How often expired offsets are looked for."),
        Setting("offsets.commit.required.acks", str, "-1", "", "When a commit is answered, with ZooKeeper: -1 once it "
                "is copied there, so that no other coordinator goes on from an older one; 1 once it is on this "
                "broker's disk.", _SECTION, choices=("-1", "1")),
        _ms("offsets.commit.timeout.ms", 5_000, "How long a commit waits for its copy before it is refused."),
        _ms("offsets.copy.interval.ms", 5, "How far apart copies to ZooKeeper are, at least; with "
            "offsets.commit.required.acks=1 a coordinator that dies takes what was committed since with it."),
        _ms("group.consumer.session.timeout.ms", 45_000, "Session of members of the KIP-848 protocol."),
        _ms("group.consumer.heartbeat.interval.ms", 5_000, "Heartbeat interval told to them."),
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
        self._modern: Modern | None = None
        self._port: ListeningPort | None = None
        self._watch: ClusterWatch | None = None
        self._housekeeping: LoopingCall | None = None
        self._offices: Offices | None = None
        """What this broker coordinates when there may be others; None without ZooKeeper: everything."""

    # Life

    def start(self) -> Deferred[None]:
        """Open the port; fires when clients may come."""
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> None:
        broker = self._broker
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._offsets_log = OffsetsLog(self._directory / "offsets", journal=broker.journal)
        zookeeper = broker.plugins.get("zookeeper")
        offices = self._make_offices() if isinstance(zookeeper, ZooKeeperPlugin) else None
        log = self._offsets_log if offices is None else offices
        coordinator = GroupCoordinator(_settings(broker.config), log, self, journal=broker.journal)
        self._groups = GroupService(coordinator, self._offsets_log, broker.reactor, broker.journal)
        modern = self._modern = Modern(broker, self._groups, self._directory, self._counts, self._users)
        if isinstance(zookeeper, ZooKeeperPlugin) and offices is not None:
            self._watch = ClusterWatch(zookeeper.registry, broker.reactor, self._cluster_seen)
            await self._watch.start()
            self._offices = offices
            await offices.start(self._groups, self._share())
        else:
            coordinator.load(self._offsets_log.replay(), broker.now())
        self._port = listen(modern, broker.config.integer("modern.port"))
        modern.address = self._advertised(self._port.getHost().port)
        modern.changed()
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
        if self._watch is not None:
            self._watch.stop()
        if self._port is not None:
            await (self._port.stopListening() or succeed(None))
        for connection in self._broker.limits:
            if isinstance(connection, ModernProtocol):
                connection.drop("shutdown", "the broker stops")
        if self._housekeeping is not None and self._housekeeping.running:
            self._housekeeping.stop()
        self._groups.stop()
        await self._groups.settled()
        if self._offices is not None:
            await self._offices.stop()
        self._offsets_log.close()
        self._modern.close()
        self._modern.logins.stop()

    # The cluster

    def _cluster_seen(self, seen: Seen) -> None:
        """Other brokers, or their topics, are not what they were: some groups may be ours now, or ours no more."""
        modern = self._modern
        assert modern is not None
        before = set(modern.view().brokers)
        modern.cluster_changed(*seen)
        live = set(modern.view().brokers)
        if live == before:
            return
        self._broker.journal.emit(ClusterChanged(brokers=tuple(sorted(live))))
        if self._offices is not None:
            self._offices.want(self._share())

    def _share(self) -> frozenset[int]:
        """The partitions of the offsets log whose groups are this broker's by the view of the cluster."""
        assert self._modern is not None
        view, own = self._modern.view(), self._modern.address.broker_id
        return frozenset(n for n in range(N_PARTITIONS) if view.coordinator(n).broker_id == own)

    def _make_offices(self) -> Offices:
        broker = self._broker
        interval_s = broker.config.integer("offsets.copy.interval.ms") / 1000
        # A session of its own: the broker leaves the registry at once when it stops, the last copies come after that.
        copier = Copier(
            lambda: session_of(broker.config, journal=broker.journal),
            broker.address.broker_id,
            broker.reactor.callFromThread,
            interval_s=interval_s,
            journal=broker.journal,
        )
        return Offices(
            self._offsets_log,
            copier,
            broker.reactor,
            broker.journal,
            wait_for_copies=broker.config["offsets.commit.required.acks"] == "-1",
            copy_timeout_s=broker.config.integer("offsets.commit.timeout.ms") / 1000,
        )

    def state(self) -> dict[str, Any]:
        """Port, groups and producers."""
        if self._modern is None or self._port is None:
            return {"port": None}
        address, recent = self._modern.address, self._modern.intake.recent
        return {
            "host": address.host,
            "port": self._port.getHost().port,
            "advertised_port": address.port,
            "producers": {"remembered": len(recent), "forgotten": recent.n_forgotten},
            "brokers": sorted(self._modern.view().brokers),
            "groups": describe(self._groups.coordinator.groups(), self._modern.view()),
            "offsets": None if self._offices is None else self._offices.state(),
        }

    def trouble(self) -> str | None:
        """Why members of groups are told COORDINATOR_NOT_AVAILABLE."""
        trouble = None if self._offices is None else self._offices.trouble
        return None if trouble is None else f"no groups are coordinated, members are told 15: {trouble}"

    def partition_count(self, topic: str) -> int | None:
        """How many partitions over the whole cluster, as the coordinator asks; None if there is no such topic."""
        row = () if self._modern is None else self._modern.view().topics.get(topic, ())
        return len(row) or None


def _settings(config: Config) -> GroupSettings:
    return GroupSettings(
        min_session_ms=config.integer("group.min.session.timeout.ms"),
        max_session_ms=config.integer("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
        max_group_size=config.integer("group.max.size"),
        max_metadata_size=config.integer("group.member.max.bytes"),
        max_group_bytes=config.integer("group.max.bytes"),
        max_groups_bytes=config.integer("groups.max.bytes"),
        max_offsets_bytes=config.integer("groups.offsets.max.bytes"),
        offset_metadata_max_size=config.integer("offset.metadata.max.bytes"),
        offsets_retention_ms=config.integer("offsets.retention.minutes") * 60_000,
        offsets_retention_check_ms=config.integer("offsets.retention.check.interval.ms"),
        consumer_session_ms=config.integer("group.consumer.session.timeout.ms"),
        consumer_heartbeat_ms=config.integer("group.consumer.heartbeat.interval.ms"),
    )
