"""The cluster as a modern client sees it: brokers, and per topic one row of partitions numbered from 0.

A 2011 topic has partitions *per broker* (``<broker id>-<partition>``, §3.2). Today's clients want one dense
numbering: partition i is the i-th of the topic's row (``zk_registry.partition_numbering``), and its leader is that
broker. A row only grows, so a number means the same log for ever; while its broker is away it has no leader. Without
ZooKeeper there is one broker, and the two numberings are the same.

Paper: §3.2 (registries).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from kafka2011.types import BrokerAddress, BrokerPartition
from since2011.topics.image import ZERO_ID, TopicImage

_TOPIC_IDS = uuid.UUID("6b61666b-6132-5031-b120-313100002011")


@lru_cache(maxsize=1 << 16)
def topic_id(topic: str) -> uuid.UUID:
    """An id for a topic that every broker computes alike; a name is never reused for another topic here."""
    return uuid.uuid5(_TOPIC_IDS, topic)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Who is there and what they hold."""

    brokers: Mapping[int, BrokerAddress]
    """Modern addresses by broker id."""
    topics: dict[str, tuple[BrokerPartition, ...]]
    """A partition's place in its row is its number. Modern topics are among them, with their leaders."""
    modern: Mapping[str, TopicImage] = field(default_factory=dict)
    """What the metadata says of modern topics."""
    has_ids: bool = True
    """Whether modern topics are known by their ids; False beside a real broker that knows none."""
    ids: dict[uuid.UUID, str] = field(init=False)

    def __post_init__(self) -> None:
        for name, topic in self.modern.items():
            row = (BrokerPartition(one.leader, index) for index, one in enumerate(topic.partitions))
            self.topics[name] = tuple(row)
        ids = {self.id_of(topic): topic for topic in self.topics}
        ids.pop(ZERO_ID, None)
        object.__setattr__(self, "ids", ids)

    def id_of(self, topic: str) -> uuid.UUID:
        """The id of a topic: a modern one has its own, a 2011 one has one made of its name."""
        image = self.modern.get(topic)
        if image is None:
            return topic_id(topic)
        return image.topic_id if self.has_ids else ZERO_ID

    def add(self, topic: str, row: tuple[BrokerPartition, ...]) -> None:
        """A topic that has come since: a new view for each of a thousand would look at all the others every time."""
        self.topics[topic] = row
        self.ids[topic_id(topic)] = topic

    def locate(self, topic: str, number: int) -> BrokerPartition | None:
        """Which broker's partition ``number`` of ``topic`` is."""
        row = self.topics.get(topic, ())
        return row[number] if 0 <= number < len(row) else None
