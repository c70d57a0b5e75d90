"""The group service: coordinator and offsets topic put together, offered to the modern port.

    start   the partitions of the offsets topic this broker leads are read
    stop    what is being flushed ends

See docs/group-protocol.md (settings have the names modern brokers give them).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from consumers.group_protocol.coordinator.holdings import is_name
from consumers.group_protocol.coordinator.records import read_key
from consumers.group_protocol.coordinator.service import GroupCoordinator
from consumers.group_protocol.coordinator.settings import GroupSettings, Record
from consumers.group_protocol.events import OffsetsNotRead, OldOffsetsAdopted, OldOffsetsLeft
from consumers.group_protocol.group_service import GroupService
from consumers.group_protocol.group_state import describe
from consumers.group_protocol.handlers import admin, groups, offsets, transactional
from consumers.group_protocol.offsets_leadership import OffsetsLeadership
from consumers.group_protocol.offsets_topic import OffsetsTopic, settings
from consumers.group_protocol.old_offsets import ADOPTED, DIRECTORY, read_old_offsets
from kafka2011.broker.reactor import within
from kafka2011.config import Config, Setting
from kafka2011.errors import Kafka2011Error
from kafka2011.types import BrokerAddress, TopicPartition
from since2011.server.services import Handler
from since2011.topics.internal import N_PARTITIONS, OFFSETS_TOPIC, partition_of
from since2011.wire.codec import ApiKey
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused

if TYPE_CHECKING:
    from since2011.server.handlers.call import Answer, Call
    from since2011.server.service import ModernBroker

    GroupHandler = Callable[["CoordinatorService", Call], Coroutine[Any, Any, Answer | None]]

_SECTION = "modern port (not in 2011)"
START_PATIENCE_S = 10.0
"""How long a start waits until the offsets are read; after that the port opens, and their groups are told 14."""


def _ms(name: str, default: int, help: str) -> Setting:
    return Setting(name, int, default, "ms", help, _SECTION, minimum=0)


class Old(Enum):
    """The offsets of release 1.1."""

    HERE = "not read yet"
    BEING_READ = "on their way into the topic"
    GONE = "in the topic, or never there"


class CoordinatorService:
    """The groups of one broker. Thread: reactor."""

    COORDINATES: ClassVar[int | None] = 0
    SETTINGS: ClassVar[tuple[Setting, ...]] = (
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
        Setting("offsets.topic.replication.factor", int, 3, "replicas", "Of __consumer_offsets, where there is a "
                "controller; fewer where there are fewer brokers when it is made.", _SECTION, minimum=1),
        _ms("offsets.commit.timeout.ms", 5_000, "How long the replicas in sync may take to have a commit."),
        _ms("group.consumer.session.timeout.ms", 45_000, "Session of members of the KIP-848 protocol."),
        _ms("group.consumer.heartbeat.interval.ms", 5_000, "Heartbeat interval told to them."),
    )  # fmt: skip

    def __init__(self, modern: ModernBroker) -> None:
        self.modern = modern
        broker = modern.broker
        leading, timeout_ms = modern.replication.leading, broker.config.integer("offsets.commit.timeout.ms")
        self._log = OffsetsTopic(modern.topics, leading, timeout_s=timeout_ms / 1000)
        coordinator = GroupCoordinator(_settings(broker.config), self._log, self, journal=broker.journal)
        self.groups = GroupService(coordinator, broker.reactor, broker.journal)
        self._log.durable, self._log.failed = self.groups.durable, self.groups.not_durable
        self._leadership = OffsetsLeadership(modern.topics, leading, self._log, self.groups, broker.journal)
        self._old_offsets = modern.directory / DIRECTORY
        self._old = Old.HERE if self._old_offsets.is_dir() else Old.GONE
        self._old_trouble: str | None = None

    def handlers(self) -> Mapping[ApiKey, Handler]:
        """The requests of groups and offsets."""
        asking: dict[ApiKey, GroupHandler] = {
            ApiKey.DESCRIBE_GROUPS: groups.describe_groups,
            ApiKey.LIST_GROUPS: groups.list_groups,
            ApiKey.DELETE_GROUPS: admin.delete_groups,
            ApiKey.OFFSET_DELETE: admin.offset_delete,
            ApiKey.CONSUMER_GROUP_DESCRIBE: admin.consumer_group_describe,
        }
        using: dict[ApiKey, GroupHandler] = {
            ApiKey.JOIN_GROUP: groups.join_group,
            ApiKey.SYNC_GROUP: groups.sync_group,
            ApiKey.HEARTBEAT: groups.heartbeat,
            ApiKey.LEAVE_GROUP: groups.leave_group,
            ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.consumer_group_heartbeat,
            ApiKey.OFFSET_COMMIT: offsets.offset_commit,
            ApiKey.OFFSET_FETCH: offsets.offset_fetch,
            ApiKey.TXN_OFFSET_COMMIT: transactional.txn_offset_commit,
        }
        return {key: partial(handler, self) for key, handler in asking.items()} | {
            key: partial(self._first_use, handler) for key, handler in using.items()
        }

    async def _first_use(self, handler: GroupHandler, call: Call) -> Answer | None:
        """The topic is made for the first group there is, also for a client that never asked who coordinates it."""
        if self._leadership.partition(0) is None and is_name(getattr(call.body, "group", "")):
            try:
                await self._make_topic()
            except Refused:
                pass  # the handler says that nobody coordinates the group
        return await handler(self, call)

    # Life

    async def start(self) -> None:
        """Read the offsets of the groups that are ours."""
        self.modern.markers.on_ended(self._transaction_ended)
        self.modern.topics.on_change(self._follow)
        self.modern.topics.watch(OFFSETS_TOPIC, self._leadership)
        await within(self.modern.reactor, START_PATIENCE_S, self._leadership.ready())

    async def stop(self) -> None:
        """Let what is being written be written."""
        self._leadership.stop()
        self.groups.stop()
        await self._log.settled()

    def brokers_changed(self) -> None:
        """Nothing changes for groups: who leads their partitions is in the metadata."""

    def _transaction_ended(self, partition: TopicPartition, producer_id: int, committed: bool) -> None:
        if partition.topic == OFFSETS_TOPIC:
            self.groups.transaction_ended(partition.partition, producer_id, committed)

    def _follow(self) -> None:
        """The metadata has changed."""
        if self._old is Old.HERE and self.modern.topics.broker_id in self.modern.topics.image.brokers:
            self._old = Old.BEING_READ
            reading = self._leadership.ready()
            reading.addCallback(lambda _: Deferred.fromCoroutine(self._adopt())).addErrback(self._not_adopted)

    async def _adopt(self) -> None:
        """Write what release 1.1 had stored into the topic, where it is not there already."""
        if self._leadership.partition(0) is None:
            await self._make_topic()
            await self._leadership.ready()
        found = await deferToThread(read_old_offsets, self._old_offsets)
        known = self.groups.coordinator.groups()
        n_offsets = n_left = 0
        for group, records in found.items():
            if not self.groups.is_available(group):
                n_left += 1
                continue
            book = known[group].book.appended if group in known else {}
            news = [each for each in records if not _is_known(each, group in known, book)]
            if news:
                self._log.append(group, news)
                self.groups.load(news)
                n_offsets += len(news)
        await self._log.settled()
        self._old = Old.GONE
        if n_left:
            self.modern.journal.emit(OldOffsetsLeft(directory=str(self._old_offsets), n_groups=n_left))
            return
        await deferToThread(self._old_offsets.rename, self._old_offsets.with_name(ADOPTED))
        self.modern.journal.emit(OldOffsetsAdopted(n_groups=len(found), n_offsets=n_offsets))

    def _not_adopted(self, failure: Failure) -> None:
        """Groups are told 14 until somebody has looked: without their offsets they would begin anew."""
        self._old_trouble = f"{self._old_offsets} cannot be taken over: {failure.getErrorMessage()}"
        self.modern.journal.emit(OffsetsNotRead(partition=-1, error=self._old_trouble))

    # Who speaks for whom

    async def coordinator_of(self, key: str) -> BrokerAddress:
        """The broker that leads the group's partition of the offsets topic, which is made if there is none yet."""
        if not is_name(key):
            raise Refused(ErrorCode.INVALID_GROUP_ID, "a group has a name, and not one as long as this")
        number = partition_of(key)
        if self._leadership.partition(number) is None:
            await self._make_topic()
        partition = self._leadership.partition(number)
        address = None if partition is None else self.modern.view().brokers.get(partition.leader)
        if address is None:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the leader of {OFFSETS_TOPIC}-{number} is away")
        return address

    async def _make_topic(self) -> None:
        try:
            topics, wanted = self.modern.topics, self.modern.broker.config.integer("offsets.topic.replication.factor")
            n_replicas = min(wanted, len(topics.image.brokers)) if topics.replicas.obeys else 1
            await topics.create(OFFSETS_TOPIC, N_PARTITIONS, max(1, n_replicas), settings(max(1, n_replicas)))
        except (Kafka2011Error, OSError) as error:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC} cannot be made: {error}") from error

    def group_error(self, group: str) -> ErrorCode:
        """Why this broker cannot speak for ``group``: another does, its offsets are being read, or cannot be."""
        if not self._leadership.is_ours(group):
            return ErrorCode.NOT_COORDINATOR
        if partition_of(group) in self._leadership.loading or self._old is not Old.GONE:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE if self.groups.is_available(group) else ErrorCode.COORDINATOR_NOT_AVAILABLE

    @property
    def is_loading(self) -> bool:
        """Whether there may be groups here that nobody can see yet."""
        return bool(self._leadership.loading) or self._old is not Old.GONE

    def partition_count(self, topic: str) -> int | None:
        """How many partitions over the whole cluster, as the coordinator asks; None if there is no such topic."""
        return len(self.modern.view().topics.get(topic, ())) or None

    def topic_id(self, topic: str) -> UUID:
        """The id a topic is written down with."""
        return self.modern.view().id_of(topic)

    def topic_name(self, number: UUID) -> str | None:
        """The topic that has this id."""
        return self.modern.view().ids.get(number)

    # What can be seen

    def state(self) -> dict[str, Any]:
        """Groups, and the partitions of the offsets topic they are in."""
        return {
            "groups": describe(self.groups.coordinator.groups(), self.modern.view()),
            "offsets": {"coordinates": sorted(self._log.served), "loading": sorted(self._leadership.loading)},
        }

    def trouble(self) -> str | None:
        """Why members of groups are told COORDINATOR_NOT_AVAILABLE."""
        if self._old_trouble is not None:
            return f"groups are told 14: {self._old_trouble}"
        for number, reason in self._leadership.unreadable.items():
            return f"groups of {OFFSETS_TOPIC}-{number} are not coordinated, members are told 15: {reason}"
        return None


def _is_known(record: Record, is_group_known: bool, book: Mapping[TopicPartition, object]) -> bool:
    key = read_key(record.key)
    return is_group_known if key.partition is None else key.partition in book


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
