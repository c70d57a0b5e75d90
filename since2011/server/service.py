"""The modern side of one broker: what its handlers share.

See docs/modern-port.md. It holds no state about readers; what groups there are and how far they read is the
business of a service beside it (``since2011.server.services``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator, deferLater

from kafka2011.broker.long_work import LongWork
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.errors import Kafka2011Error, LogFull, TooManyTopics
from kafka2011.types import BrokerAddress, BrokerPartition, is_legal_name
from kafka2011.wire import DEFAULT_LIMITS
from since2011.era2011.bridge import Bridge
from since2011.era2011.intake import Intake
from since2011.era2011.unpacking import Unpacker
from since2011.log.identity import Identity
from since2011.log.validation import Validator
from since2011.replication.delayed_fetch import DelayedFetches
from since2011.replication.flushes import Flushes
from since2011.server.appending import Appending
from since2011.server.controllership import Controllership
from since2011.server.fetch_sessions import FetchSessions
from since2011.server.handlers.table import HANDLERS
from since2011.server.logins import Logins
from since2011.server.logs import ModernLogs
from since2011.server.markers import Markers
from since2011.server.modern_topics import ModernTopics
from since2011.server.producer_ids import ProducerIdBlocks
from since2011.server.replication import Replication
from since2011.server.services import Handler, Service, Verifier
from since2011.server.untaken import Untaken
from since2011.server.users import Users
from since2011.topics.administration import DEFAULT, Administration
from since2011.topics.cluster import ClusterView
from since2011.topics.events import TopicsRefused
from since2011.topics.internal import INTERNAL_TOPICS
from since2011.topics.store import MetadataStore
from since2011.topics.topic_counts import TopicCounts
from since2011.topics.topic_creation import TopicCreation
from since2011.topics.zookeeper_store import ZooKeeperStore
from since2011.wire.codec import ApiKey
from since2011.wire.compression import compress, decompress
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker
    from since2011.server.handlers.call import Call

MAX_INFLATED = 64 << 20
"""Bytes a batch may inflate to where it has to be opened."""


class ModernBroker:
    """One broker seen from today. Thread: reactor."""

    def __init__(
        self, broker: Broker, directory: Path, counts: TopicCounts, users: Users | None, store: MetadataStore
    ) -> None:
        self.broker = broker
        self.reactor = broker.reactor
        self.journal = broker.journal
        self.directory = directory
        """Where services keep their files."""
        self.handlers: dict[ApiKey, Handler] = {key: partial(handler, self) for key, handler in HANDLERS.items()}
        self.coordinators: dict[int, Service] = {}
        """By the key type of FindCoordinator."""
        self.verifier: Verifier | None = None
        """Whom leaders ask about transactions; None where no service knows any."""
        self.users = users
        self.logins = Logins(broker.reactor, broker.rate_limit)
        self.tls = broker.tls is not None
        self.auto_create = broker.config["auto.create.topics.enable"] is True
        self.untaken = Untaken(broker.config.integer("max.untaken.answer.bytes"))
        self.delayed_fetches = DelayedFetches(broker.reactor)
        self.fetch_sessions = FetchSessions(
            broker.config.integer("max.incremental.fetch.session.cache.slots"), Random()
        )
        self.flushes = Flushes()
        self.clock = SYSTEM_CLOCK
        cooperator = Cooperator(scheduler=lambda step: cast(Any, broker.reactor.callLater(0, step)))
        self.packing = LongWork(broker.reactor, "packing")
        self.packing.start()
        self.bridge = Bridge(cooperator, broker.journal, self.packing.do)
        self.intake = Intake(broker, directory, lambda producer_id: self.producer_ids.is_fresh(producer_id))
        self.unpacker = Unpacker(DEFAULT_LIMITS.max_inflated, broker.config.integer("max.message.size"))
        self.address = BrokerAddress(broker.address.broker_id, "", 0)
        """Where clients find this port; known once it listens."""
        self.log_format = str(broker.config["log.format"])
        """Of which era topics are that are made because somebody asks about them."""
        self.validator = Validator(lambda codec, data: decompress(codec, data, MAX_INFLATED), compress)
        self.searching = LongWork(broker.reactor, "searching")
        self.searching.start()
        self.store = store
        self.logs = ModernLogs(
            broker.config,
            Identity(broker.address.broker_id, store.image.cluster_id),
            lambda topic: self.topics.config_of(topic),
            journal=broker.journal,
        )
        own_id = broker.address.broker_id
        self.administration = Administration(broker.config, store, own_id, Random(), broker.journal)
        self.replication = Replication(
            broker,
            store,
            self.logs.manager,
            self.flushes,
            self.delayed_fetches,
            lambda topic: self.topics.config_of(topic),
        )
        self.topics = ModernTopics(
            store,
            self.logs.manager,
            self.administration,
            self.replication.manager,
            broker.reactor,
            broker.journal,
        )
        self.topics.on_change(self._topics_changed)
        self.appending = Appending(self.topics, self.replication.leading)
        self.markers = Markers(self)
        self.controllership: Controllership | None = None
        """None without ZooKeeper, or behind TLS or a login: then this broker decides for itself."""
        if isinstance(store, ZooKeeperStore) and store.replicates:
            self.controllership = Controllership(broker, store, self.topics.config_of)
        self.producer_ids = ProducerIdBlocks(store, self.intake.notes.reserved)
        self.creation = TopicCreation(broker, counts)
        self._others: dict[int, BrokerAddress] = {}
        self._rows: dict[str, tuple[BrokerPartition, ...]] | None = None
        """What the registry says of all topics; None without ZooKeeper, then this broker's own are all there are."""
        self._view: ClusterView | None = None
        broker.visibility.on_moved(self.delayed_fetches.flushed)

    def offer(self, services: Iterable[Service]) -> None:
        """Answer the requests of these services, too."""
        for service in services:
            self.handlers |= service.handlers()
            if service.COORDINATES is not None:
                self.coordinators[service.COORDINATES] = service

    def close(self) -> None:
        """Close the files; called when no client is left."""
        self.packing.stop()
        self.searching.stop()
        self.intake.close()

    # What there is

    def view(self) -> ClusterView:
        """The cluster as it is now."""
        if self._view is None:
            rows = self._own_rows() if self._rows is None else {topic: row for topic, row in self._rows.items() if row}
            brokers = {**self.topics.brokers(), **self._others, self.address.broker_id: self.address}
            self._view = ClusterView(brokers, rows, self.topics.image.topics, self.topics.image.has_ids)
        return self._view

    def _own_rows(self) -> dict[str, tuple[BrokerPartition, ...]]:
        own, store = self.address.broker_id, self.broker.store
        counts = {topic: store.partition_count(topic) for topic in store.topics()}
        return {topic: tuple(BrokerPartition(own, n) for n in range(count)) for topic, count in counts.items()}

    @property
    def cluster_id(self) -> str:
        """The cluster's own name, drawn when it was first started."""
        return self.topics.image.cluster_id

    def controller_id(self) -> int:
        """The broker that clients send requests about topics to."""
        elected = self.topics.image.elected_controller
        brokers = self.view().brokers
        return elected if elected is not None and elected in brokers else min(brokers)

    def changed(self) -> None:
        """The address became known."""
        self._view = None

    def _topics_changed(self) -> None:
        self._view = None
        self.delayed_fetches.wake_all()

    def topic_created(self, topic: str, n_partitions: int) -> None:
        """Clients see it from now on; in a cluster, once it has its row."""
        if self._view is not None and self._rows is None:
            own = self.address.broker_id
            self._view.add(topic, tuple(BrokerPartition(own, n) for n in range(n_partitions)))

    def cluster_changed(self, brokers: dict[int, BrokerAddress], rows: dict[str, tuple[BrokerPartition, ...]]) -> None:
        """The registry tells of other brokers and their topics."""
        self._others = {number: address for number, address in brokers.items() if number != self.address.broker_id}
        self._rows = rows
        self._view = None

    def breathe(self) -> Deferred[None]:
        """Let others have their turn in the middle of something long."""
        return deferLater(cast(Any, self.reactor), 0)

    # Topics

    def is_modern(self, topic: str) -> bool:
        """Of which era a topic is."""
        return topic in self.topics

    async def created_for(self, topic: str, call: Call) -> bool:
        """Create a topic somebody produces to, if it is nowhere and may be; True if it is a modern one now."""
        if topic in self.view().topics or not self.auto_create or self.log_format != "modern":
            return False
        try:
            self.check_name(topic)
        except Refused:
            return False
        # What this client sends next may build on the topic: it waits.
        creating = Deferred.fromCoroutine(self.create_topics({topic: None}, call.caller.address))
        await call.caller.alone(1, creating)
        return self.is_modern(topic)

    async def create_topics(self, wanted: Mapping[str, int | None], address: str) -> dict[str, Kafka2011Error]:
        """Create topics that somebody asks about; why some could not be."""
        if self.log_format != "modern":
            return await self.creation.create(wanted, address)
        errors: dict[str, Kafka2011Error] = {}
        for topic, count in wanted.items():
            if not self.broker.creations.take(address):
                errors[topic] = Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, self.broker.creations.sentence)
                continue
            try:
                self.check_room(1)
                n_partitions = self.broker.config.integer("num.partitions") if count is None else count
                await self.topics.create(topic, n_partitions, DEFAULT)
            except Kafka2011Error as error:
                errors[topic] = error
            except OSError as error:
                errors[topic] = LogFull(f"{topic} is not created: {error}; try again later")
        if errors:
            some = next(iter(errors.values()))
            refused = TopicsRefused(peer=address, n_topics=len(errors), reason=str(some))
            self.broker.rate_limit.emit("topics", refused)
        return errors

    def check_room(self, n_topics: int) -> None:
        """Refuse more topics than ``max.topics``, of both eras together."""
        most = self.broker.config.integer("max.topics")
        if len(self.view().topics) + n_topics > most:
            raise TooManyTopics(f"{len(self.view().topics)} topics; max.topics is {most}")

    def local_partition(self, topic: str, number: int, *, creator: str | None = None) -> int:
        """This broker's own number of a partition. Raises Refused when it is another's, or nobody's.

        ``creator`` is the address of a client for whom the topic is created if there is none.
        """
        place = self.view().locate(topic, number)
        if place is None and creator is not None and topic not in self.view().topics:
            self.check_new(topic, wanted=True)
            if not self.broker.store.has_topic(topic) and not self.broker.creations.take(creator):
                raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, self.broker.creations.sentence)
            self.broker.store.get_or_create(topic, 0)
            place = self.view().locate(topic, number)
        if place is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {number} of {topic!r}")
        if place.broker_id != self.address.broker_id:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic} {number} is on broker {place.broker_id}")
        return place.partition

    def check_name(self, topic: str) -> None:
        """Refuse what cannot be a topic."""
        longest = self.broker.config.integer("max.topic.name.length")
        if not is_legal_name(topic, longest) or topic in INTERNAL_TOPICS:
            raise Refused(ErrorCode.INVALID_TOPIC, f"{topic[:250]!r} cannot be a topic here")

    def check_new(self, topic: str, *, wanted: bool) -> None:
        """Refuse a topic that is not there and is not to be created because somebody asks about it."""
        self.check_name(topic)
        if not (wanted and self.auto_create):
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic}")

    @staticmethod
    def check_leader_epoch(epoch: int) -> None:
        """Partitions never change leaders here, so the epoch is 0 for ever; -1 means the client does not say."""
        if epoch > 0:
            raise Refused(ErrorCode.UNKNOWN_LEADER_EPOCH, f"leader epoch {epoch}; here it is always 0")

    def advertised(self, broker: BrokerAddress, reached: str) -> BrokerAddress:
        """Where to send a client: a broker that was told no name is where the client has reached it."""
        if broker.host or broker.broker_id != self.address.broker_id:
            return broker
        return replace(broker, host=reached)
