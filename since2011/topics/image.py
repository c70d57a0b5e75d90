"""What is known of a cluster at one moment: brokers, topics, leaders, settings. Immutable; a change is a new image.

An image is handed from thread to thread without locks. Tables are shared between one image and the next, so a change
costs a copy of one table of names, whatever the number of topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from uuid import UUID

from zk_registry.modern.texts import NO_LEADER, Endpoint

ZERO_ID = UUID(int=0)
"""The id of a topic that has none, as clients see it."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A living broker."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    epoch: int = -1
    """The number of its registration: a broker that comes back has a higher one."""
    knows_ids: bool = True
    """Whether it knows topics by their ids: a real one at inter-broker protocol 2.6 does not."""

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where it listens under this name."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """One partition: who holds it, who leads it, who keeps up."""

    replicas: tuple[int, ...]
    leader: int = NO_LEADER
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1
    """The version of its state node: which writer of the in-sync set comes first."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    controller_epoch: int = 0
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic; its partitions in order of their numbers."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionImage, ...]


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """Everything known. ``number`` grows with each change seen by this broker."""

    cluster_id: str
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Settings that differ from the defaults, by ``topics/<name>``, ``brokers/<id>``, ``clients/<name>`` …"""
    elected_controller: int | None = None
    number: int = 0
    names: Mapping[UUID, str] = field(default_factory=dict)
    """The name of each topic id."""

    @property
    def controller_id(self) -> int:
        """Whom to send requests about topics to: without an elected controller any broker; -1 if there is none."""
        if self.elected_controller is not None:
            return self.elected_controller
        return min(self.brokers, default=-1)

    @property
    def has_ids(self) -> bool:
        """Whether clients may know topics by their ids: they take an id that one broker tells them to any other."""
        return all(broker.knows_ids for broker in self.brokers.values())

    def config(self, entity: str) -> Mapping[str, str]:
        """The settings of ``topics/<name>``, ``brokers/<id>`` … that differ from the defaults."""
        return self.configs.get(entity, _NOTHING)

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """One partition, if there is such a one."""
        found = self.topics.get(topic)
        return found.partitions[index] if found is not None and 0 <= index < len(found.partitions) else None

    def topic_of_id(self, topic_id: UUID) -> TopicImage | None:
        """The topic that has this id."""
        name = self.names.get(topic_id)
        return None if name is None else self.topics.get(name)

    def with_topics(self, changed: Iterable[TopicImage], gone: Iterable[str] = ()) -> ClusterImage:
        """The image after topics were made, changed or removed."""
        topics, names = dict(self.topics), dict(self.names)
        for name in gone:
            before = topics.pop(name, None)
            if before is not None:
                names.pop(before.topic_id, None)
        for topic in changed:
            before = topics.get(topic.name)
            if before is not None and before.topic_id != topic.topic_id:
                names.pop(before.topic_id, None)
            topics[topic.name] = topic
            if topic.topic_id != ZERO_ID:
                names[topic.topic_id] = topic.name
        return replace(self, topics=topics, names=names, number=self.number + 1)

    def with_configs(self, changed: Mapping[str, Mapping[str, str] | None]) -> ClusterImage:
        """The image after settings were changed; None: there are none any more."""
        configs = dict(self.configs)
        for entity, settings in changed.items():
            if settings:
                configs[entity] = MappingProxyType(dict(settings))
            else:
                configs.pop(entity, None)
        return replace(self, configs=configs, number=self.number + 1)

    def with_brokers(self, brokers: Mapping[int, BrokerImage]) -> ClusterImage:
        """The image with other brokers living."""
        return replace(self, brokers=dict(sorted(brokers.items())), number=self.number + 1)
