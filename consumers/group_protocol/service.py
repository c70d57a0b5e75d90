"""The modern side of one broker: what its handlers share.

Spec: modern-group-protocol §1. It holds no state about readers; what groups there are and how far they read is the
coordinator's business, a service beside the 2011 broker, not part of it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator, deferLater

from consumers.group_protocol.arrivals import Arrivals
from consumers.group_protocol.bridge import Bridge
from consumers.group_protocol.cluster import ClusterView
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.group_service import GroupService
from consumers.group_protocol.handlers.refusals import Refused
from consumers.group_protocol.intake import Intake
from consumers.group_protocol.logins import Logins
from consumers.group_protocol.offsets_log import TOPIC as OFFSETS_TOPIC
from consumers.group_protocol.offsets_log import partition_of
from consumers.group_protocol.topic_counts import TopicCounts
from consumers.group_protocol.topic_creation import TopicCreation
from consumers.group_protocol.unpacking import Unpacker
from consumers.group_protocol.untaken import Untaken
from consumers.group_protocol.users import Users
from kafka2011.broker.long_work import LongWork
from kafka2011.types import BrokerAddress, BrokerPartition, is_legal_name
from kafka2011.wire import DEFAULT_LIMITS

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

CLUSTER_ID = "kafka2011"


class Modern:
    """One broker seen from today. Thread: reactor."""

    cluster_id = CLUSTER_ID

    def __init__(self, broker: Broker, groups: GroupService, directory: Path, counts: TopicCounts, users: Users | None):
        self.broker = broker
        self.reactor = broker.reactor
        self.journal = broker.journal
        self.groups = groups
        self.users = users
        self.logins = Logins(broker.reactor, broker.seldom)
        self.tls = broker.tls is not None
        self.auto_create = broker.config["auto.create.topics.enable"] is True
        self.untaken = Untaken(broker.config.integer("max.untaken.answer.bytes"))
        self.arrivals = Arrivals(broker.reactor)
        cooperator = Cooperator(scheduler=lambda step: cast(Any, broker.reactor.callLater(0, step)))
        self.packing = LongWork(broker.reactor, "packing")
        self.packing.start()
        self.bridge = Bridge(cooperator, broker.journal, self.packing.do)
        self.intake = Intake(broker, directory)
        self.unpacker = Unpacker(DEFAULT_LIMITS.max_inflated, broker.config.integer("max.message.size"))
        self.address = BrokerAddress(broker.address.broker_id, "", 0)
        """Where clients find this port; known once it listens."""
        self.creation = TopicCreation(broker, counts)
        self._others: dict[int, BrokerAddress] = {}
        self._rows: dict[str, tuple[BrokerPartition, ...]] | None = None
        """What the registry says of all topics; None without ZooKeeper, then this broker's own are all there are."""
        self._view: ClusterView | None = None
        broker.on_flushed(self.arrivals.flushed)

    def close(self) -> None:
        """Close the files; called when no client is left."""
        self.packing.stop()
        self.intake.close()

    # What there is

    def view(self) -> ClusterView:
        """The cluster as it is now."""
        if self._view is None:
            rows = self._own_rows() if self._rows is None else {topic: row for topic, row in self._rows.items() if row}
            self._view = ClusterView({**self._others, self.address.broker_id: self.address}, rows)
        return self._view

    def _own_rows(self) -> dict[str, tuple[BrokerPartition, ...]]:
        own, store = self.address.broker_id, self.broker.store
        counts = {topic: store.partition_count(topic) for topic in store.topics()}
        return {topic: tuple(BrokerPartition(own, n) for n in range(count)) for topic, count in counts.items()}

    def changed(self) -> None:
        """The address became known."""
        self._view = None

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
        if not is_legal_name(topic, longest) or topic == OFFSETS_TOPIC:
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

    # Groups

    def coordinator_of(self, group: str) -> BrokerAddress:
        """The broker that holds the group's part of the offsets log."""
        return self.view().coordinator(partition_of(group))

    def coordinates(self, group: str) -> bool:
        """Tell whether that is this one."""
        return self.coordinator_of(group).broker_id == self.address.broker_id

    def group_error(self, group: str) -> ErrorCode:
        """Why this broker cannot speak for ``group``: another does, its offsets are on their way, or damaged."""
        if not self.coordinates(group):
            return ErrorCode.NOT_COORDINATOR
        if self.groups.is_loading(group):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE if self.groups.is_available(group) else ErrorCode.COORDINATOR_NOT_AVAILABLE

    def advertised(self, broker: BrokerAddress, reached: str) -> BrokerAddress:
        """Where to send a client: a broker that was told no name is where the client has reached it."""
        if broker.host or broker.broker_id != self.address.broker_id:
            return broker
        return replace(broker, host=reached)
