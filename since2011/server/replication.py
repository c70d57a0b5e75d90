"""Replication on a broker: its parts put together, and the settings they have.

    start    the lease is kept, followers are looked after
    leave    the controller is asked to move what this broker leads (ControlledShutdown)
    stop     nobody is followed any more

Without ZooKeeper there are no other brokers: only the parts that a single copy needs are at work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from prometheus_client.registry import Collector
from twisted.internet.task import LoopingCall, deferLater

from kafka2011.broker.reactor import every
from kafka2011.config import Config, Setting
from kafka2011.errors import Kafka2011Error
from kafka2011.types import BrokerAddress, TopicPartition
from since2011.log.log import ModernLog
from since2011.log.manager import LogManager
from since2011.log.settings import LogConfig
from since2011.replication.copy import Logs
from since2011.replication.delayed_fetch import DelayedFetches
from since2011.replication.fetcher import FetchSettings
from since2011.replication.flushes import Flushes
from since2011.replication.following import Following
from since2011.replication.in_sync import InSyncSets
from since2011.replication.leader import SyncRules
from since2011.replication.leadership import Leaderships
from since2011.replication.leading import Leading
from since2011.replication.lease_keeper import LeaseKeeper
from since2011.replication.led import Led
from since2011.replication.manager import ReplicaManager
from since2011.replication.metrics import ReplicaMetrics
from since2011.replication.peer import ask_within, connect
from since2011.replication.throttle import Throttle
from since2011.topics.store import MetadataStore
from since2011.topics.zookeeper_store import ZooKeeperStore
from since2011.wire.codec import ApiKey, Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka2011.broker.service import Broker
    from since2011.server.handlers.call import Caller

_SECTION = "replication (not in 2011)"


def _ms(name: str, default: int, help: str, minimum: int = 1) -> Setting:
    return Setting(name, int, default, "ms", help, _SECTION, minimum=minimum)


SETTINGS: tuple[Setting, ...] = (
    _ms("replica.lag.time.max.ms", 30_000, "How long a follower may be behind before it leaves the in-sync set."),
    _ms("replica.disconnect.grace.ms", 500, "How long a follower whose connection was closed may take to fetch again "
        "before it leaves the in-sync set. (Kafka waits for its lag or for the end of its session.)"),
    Setting("num.replica.fetchers", int, 1, "connections", "To each leader, among which the partitions are divided.",
            _SECTION, minimum=1, maximum=64),
    _ms("replica.fetch.wait.max.ms", 500, "How long a leader may hold a follower's fetch."),
    Setting("replica.fetch.min.bytes", int, 1, "bytes", "How much a leader waits for before it answers a follower.",
            _SECTION, minimum=0),
    Setting("replica.fetch.max.bytes", int, 1 << 20, "bytes", "Of one partition in an answer to a follower.", _SECTION,
            minimum=1),
    Setting("replica.fetch.response.max.bytes", int, 10 << 20, "bytes", "Of an answer to a follower.", _SECTION,
            minimum=1, maximum=64 << 20),
    _ms("replica.fetch.backoff.ms", 1_000, "Longest pause before a leader that refused or was away is asked again."),
    _ms("replica.socket.timeout.ms", 30_000, "How long a leader may take to answer."),
    Setting("replica.lease.enable", bool, True, "", "Acknowledge acks=0 and acks=1, and speak for groups, only as long "
            "as nobody else can lead: not when ZooKeeper has not answered for almost a session. Off: as Kafka, which "
            "loses what such a leader acknowledges.", _SECTION),
    Setting("controlled.shutdown.enable", bool, True, "", "Before stopping, let the controller move what this broker "
            "leads.", _SECTION),
    Setting("controlled.shutdown.max.retries", int, 3, "times", "How often that is asked for.", _SECTION, minimum=1),
    _ms("controlled.shutdown.retry.backoff.ms", 5_000, "Pause between two times.", 0),
)  # fmt: skip


class Replication:
    """Everything of replication on one broker. Thread: reactor."""

    def __init__(
        self,
        broker: Broker,
        store: MetadataStore,
        logs: LogManager,
        flushes: Flushes,
        readers: DelayedFetches,
        config_of: Callable[[str], LogConfig],
    ) -> None:
        config = broker.config
        self._broker, self._store, self._logs, self._config_of = broker, store, logs, config_of
        self.me = broker.address.broker_id
        self._zookeeper = store if isinstance(store, ZooKeeperStore) else None
        self._lease: LeaseKeeper | None = None
        if self._zookeeper is not None and config["replica.lease.enable"] is True:
            self._lease = LeaseKeeper(self._zookeeper.session)
        led: dict[tuple[str, int], Led] = {}
        self.leaderships = Leaderships()
        self.leading = Leading(
            broker.reactor,
            led,
            flushes,
            readers,
            rules=SyncRules(
                lag_s=config.integer("replica.lag.time.max.ms") / 1000,
                grace_s=config.integer("replica.disconnect.grace.ms") / 1000,
            ),
            has_lease=self._has_lease,
            is_live=lambda replica: self.manager.is_live(replica),
        )
        following = Following(
            self.me,
            Logs(logs.get, self._create, logs.checkpoint),
            reactor=broker.reactor,
            journal=broker.journal,
            settings=_fetch_settings(config),
            address_of=lambda leader: self.manager.address_of(leader),
            flushes=flushes,
            throttle=self._throttle(),
        )
        self.manager = ReplicaManager(
            self.me,
            logs,
            led=led,
            leading=self.leading,
            following=following,
            leaderships=self.leaderships,
            config_of=config_of,
            topic_id_of=self._topic_id,
            broker_epoch=self._broker_epoch,
            term=self._term,
            reactor=broker.reactor,
            journal=broker.journal,
        )
        if self._zookeeper is not None:
            session = self._zookeeper.session
            self.leading.in_sync = InSyncSets(broker.reactor, session, broker.journal, self.leading.in_sync_stored)
        self._fetching: dict[Caller, tuple[int, set[TopicPartition]]] = {}
        self._loops: list[LoopingCall] = []

    @property
    def is_clustered(self) -> bool:
        """Whether there can be other brokers."""
        return self._zookeeper is not None

    # -- life -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin."""
        if self._lease is not None:
            self._lease.start()
        if self._zookeeper is not None:
            lag_s = self._broker.config.integer("replica.lag.time.max.ms") / 1000
            self._loops.append(every(self._broker.reactor, lag_s / 2, self.leading.tick))

    async def leave(self) -> None:
        """Ask the controller to let others lead, before the port is closed."""
        config = self._broker.config
        if not self.manager.obeys or config["controlled.shutdown.enable"] is not True or not self.manager.replicas:
            return
        self.manager.is_leaving = True
        for attempt in range(config.integer("controlled.shutdown.max.retries")):
            if attempt:
                await self._broker_pause(config.integer("controlled.shutdown.retry.backoff.ms") / 1000)
            try:
                if await self._ask_to_leave():
                    return
            except Kafka2011Error:
                continue  # the controller is away; whoever comes after it sees us go

    async def _ask_to_leave(self) -> bool:
        controller = self._store.image.elected_controller
        address = None if controller is None else self.address_of(controller)
        if address is None:
            return False
        reactor = self._broker.reactor
        peer = await connect(reactor, address.host, address.port, str(self.me), 2.0)
        try:
            body = Struct(broker_id=self.me, broker_epoch=self._broker_epoch())
            answer = await ask_within(reactor, peer, 10.0, ApiKey.CONTROLLED_SHUTDOWN, 3, body)
        finally:
            peer.abort()
        return not answer.error and not answer.remaining

    async def _broker_pause(self, seconds: float) -> None:
        await deferLater(cast(Any, self._broker.reactor), seconds)

    def stop(self) -> None:
        """End."""
        for loop in self._loops:
            loop.stop()
        self._loops.clear()
        self.manager.following.stop()
        if self._lease is not None:
            self._lease.stop()

    def collectors(self) -> list[Collector]:
        """The metrics of replicas."""
        return [ReplicaMetrics(self.manager)]

    # -- what the parts ask ---------------------------------------------------------------------------------------

    def _has_lease(self, term: int) -> bool:
        return self._lease is None or self._lease.holds(term)

    def _broker_epoch(self) -> int:
        return -1 if self._zookeeper is None else self._zookeeper.broker_epoch

    def _term(self) -> int:
        return 0 if self._zookeeper is None else self._zookeeper.term

    def _topic_id(self, topic: str) -> UUID | None:
        image = self._store.image.topics.get(topic)
        return None if image is None or image.topic_id == UUID(int=0) else image.topic_id

    def _create(self, topic: str, index: int) -> ModernLog:
        replica = self.manager.replicas.get((topic, index))
        is_new = replica is None or replica.is_new
        return self._logs.get_or_create(topic, index, self._topic_id(topic), self._config_of(topic), is_new=is_new)

    def address_of(self, broker: int) -> BrokerAddress | None:
        """Where another broker is: as the controller says, else as it has registered."""
        told = self.manager.address_of(broker)
        image = self._store.image.brokers.get(broker)
        if told is not None or image is None or not image.endpoints:
            return told
        endpoint = image.endpoints[0]
        return BrokerAddress(broker, endpoint.host, endpoint.port)

    def _throttle(self) -> Throttle:
        def rate() -> int | None:
            text = self._store.image.config(f"brokers/{self.me}").get("follower.replication.throttled.rate")
            return int(text) if text is not None and text.isdecimal() else None

        def is_listed(topic: str, index: int) -> bool:
            listed = self._config_of(topic).follower_replication_throttled_replicas
            return "*" in listed or f"{index}:{self.me}" in listed

        return Throttle(self._broker.reactor.seconds, rate, is_listed)

    # -- followers' connections -----------------------------------------------------------------------------------

    def asked_by(self, caller: Caller, replica: int, partitions: Iterable[TopicPartition]) -> None:
        """A follower fetches on this connection: if it is closed, the follower may be gone."""
        known = self._fetching.get(caller)
        if known is None:
            caller.when_lost(lambda: self._hung_up(caller))
        self._fetching[caller] = replica, set(partitions)

    def _hung_up(self, caller: Caller) -> None:
        replica, partitions = self._fetching.pop(caller)
        elsewhere = {key for other, keys in self._fetching.values() if other == replica for key in keys}
        self.leading.hung_up(replica, partitions - elsewhere)


def _fetch_settings(config: Config) -> FetchSettings:
    return FetchSettings(
        wait_ms=config.integer("replica.fetch.wait.max.ms"),
        min_bytes=config.integer("replica.fetch.min.bytes"),
        max_bytes=config.integer("replica.fetch.max.bytes"),
        response_max_bytes=config.integer("replica.fetch.response.max.bytes"),
        backoff_s=config.integer("replica.fetch.backoff.ms") / 1000,
        timeout_s=config.integer("replica.socket.timeout.ms") / 1000,
        n_fetchers=config.integer("num.replica.fetchers"),
    )
