"""The cluster as a modern client sees it: brokers, and per topic one row of partitions numbered from 0.

A 2011 topic has partitions *per broker* (``<broker id>-<partition>``, §3.2). Today's clients want one dense numbering:
partition i is the i-th of the topic's row (``zk_registry.rows``), and its leader is that broker. A row only grows, so a
number means the same log for ever; while its broker is away it has no leader. Without ZooKeeper there is one broker,
and the two numberings are the same. A group's coordinator is chosen among the live brokers by the group's partition of
``__consumer_offsets``: everyone who sees the same brokers names the same one, and when a broker dies only its own
groups move; ``offices`` has their offsets follow.

Paper: §3.2 (registries). Spec: modern-group-protocol §11 (group hash).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from kafka2011.types import BrokerAddress, BrokerPartition

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
    """A partition's place in its row is its number."""
    ids: dict[uuid.UUID, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", {topic_id(topic): topic for topic in self.topics})

    def add(self, topic: str, row: tuple[BrokerPartition, ...]) -> None:
        """A topic that has come since: a new view for each of a thousand would look at all the others every time."""
        self.topics[topic] = row
        self.ids[topic_id(topic)] = topic

    def locate(self, topic: str, number: int) -> BrokerPartition | None:
        """Which broker's partition ``number`` of ``topic`` is."""
        row = self.topics.get(topic, ())
        return row[number] if 0 <= number < len(row) else None

    def coordinator(self, offsets_partition: int) -> BrokerAddress:
        """The broker that holds this partition of the offsets log: the live one that scores highest for it."""

        def score(broker_id: int) -> bytes:
            return hashlib.sha256(f"{offsets_partition}-{broker_id}".encode()).digest()

        return self.brokers[max(self.brokers, key=score)]
