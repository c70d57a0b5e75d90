"""The rules by which a broker lets topics be made, grown and altered, before the store is asked.

Limits come first, then names, then places, then settings: who is refused leaves nothing behind. Everything here reads
the image and computes; waiting for the store is the caller's business.

| asked | refused with |
|---|---|
| a name no topic may have, or the twin of another | INVALID_TOPIC |
| a topic that is there | TOPIC_ALREADY_EXISTS |
| fewer than 1 or more than 5,000 partitions; fewer than there are | INVALID_PARTITIONS |
| more replicas than can be | INVALID_REPLICATION_FACTOR |
| partitions placed on brokers that are not there, with gaps, twice | INVALID_REPLICA_ASSIGNMENT |
| a setting there is not, or that cannot have that value | INVALID_CONFIG |
| more topics or partitions than ``max.topics``, ``max.partitions`` | POLICY_VIOLATION |
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from kafka2011.config import Config, Setting
from kafka2011.errors import ConfigError
from kafka2011.events import Journal
from since2011.log.settings import LogConfig, topic_settings
from since2011.topics.broker_settings import BrokerSettings
from since2011.topics.errors import (
    InvalidAssignment,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidSetting,
    TooMany,
    TopicExists,
    UnknownTopic,
)
from since2011.topics.events import TooFewBrokers
from since2011.topics.image import ClusterImage, TopicImage
from since2011.topics.internal import INTERNAL_TOPICS
from since2011.topics.names import check_collision, check_name
from since2011.topics.placement import Assignments, check_assignments, place
from since2011.topics.store import MetadataStore

_SECTION = "modern topics (not in 2011)"
DEFAULT = -1
"""Of partitions or replicas: as many as the broker gives by itself."""
MAX_PARTITIONS = 5_000
"""Of one topic: what its node in ZooKeeper has room for."""


def _log_settings() -> tuple[Setting, ...]:
    """The broker's settings that give modern topics their defaults, out of the one declaration of both."""
    return tuple(
        Setting(declared.of_broker, str, None, "", f"{declared.name} of modern topics that do not set it "
                f"(Kafka's default: {declared.default_text or 'none'}). {declared.help}", _SECTION)
        for declared in topic_settings().values()
        if declared.of_broker is not None
    )  # fmt: skip


SETTINGS: tuple[Setting, ...] = (
    Setting("default.replication.factor", int, 1, "replicas", "Of modern topics made without saying how many.",
            _SECTION, minimum=1),
    Setting("broker.rack", str, None, "", "Where this broker stands; partitions are spread over racks. Set it on all "
            "brokers or on none.", _SECTION),
    Setting("delete.topic.enable", bool, True, "", "Let modern clients delete topics.", _SECTION),
    *_log_settings(),
)  # fmt: skip


class Administration:
    """What may be asked of the topics of a cluster, at one of its brokers. Thread: any."""

    def __init__(
        self, config: Config, store: MetadataStore, broker_id: int, random: Random, journal: Journal | None = None
    ) -> None:
        self._journal = journal or Journal()
        self._config, self._store, self._random = config, store, random
        self.broker_id = broker_id
        self.settings = BrokerSettings(config)

    @property
    def image(self) -> ClusterImage:
        return self._store.image

    def known(self, name: str) -> TopicImage:
        """The topic of this name; raises UnknownTopic."""
        topic = self.image.topics.get(name)
        if topic is None:
            raise UnknownTopic(f"there is no topic {name[:250]}")
        return topic

    def place_new(
        self, name: str, n_partitions: int, n_replicas: int, by_hand: Assignments | None = None
    ) -> Assignments:
        """Where the partitions of a new topic are to lie; raises TopicError if there can be no such topic."""
        image = self.image
        check_name(name)
        if name in image.topics:
            raise TopicExists(f"{name} is there already")
        check_collision(name, image.topics)
        n_partitions = self._config.integer("num.partitions") if n_partitions == DEFAULT else n_partitions
        n_replicas = self._config.integer("default.replication.factor") if n_replicas == DEFAULT else n_replicas
        if by_hand:
            check_assignments(by_hand, image.brokers)
            n_partitions, n_replicas = len(by_hand), len(by_hand[0])
        _check_count(n_partitions)
        if n_replicas > 1 and not self._store.replicates:
            raise InvalidReplicationFactor(
                f"{n_replicas} replicas: a lone broker keeps one copy of each partition; ask for 1, or for -1, or give "
                "brokers a ZooKeeper (zk.connect) and a modern port without TLS and login"
            )
        if name in INTERNAL_TOPICS and n_replicas > len(image.brokers):
            self._journal.emit(TooFewBrokers(topic=name, wanted=n_replicas, made=len(image.brokers)))
            n_replicas = max(1, len(image.brokers))
        self._check_room(n_partitions, n_topics=1)
        return by_hand or place(_racks(image), n_partitions, n_replicas, self._random)

    def place_growth(self, name: str, count: int, by_hand: list[tuple[int, ...]] | None = None) -> Assignments:
        """Where the partitions that bring a topic to ``count`` are to lie."""
        topic, image = self.known(name), self.image
        n = len(topic.partitions)
        if count <= n:
            raise InvalidPartitions(f"{name} has {n} partitions, and {count} are asked for; a topic only grows")
        _check_count(count)
        self._check_room(count - n)
        first = topic.partitions[0].replicas
        if by_hand is None:
            # Go on in the row of brokers where the topic began, as a real broker does.
            row = sorted(image.brokers)
            start = next((at for at, broker in enumerate(row) if broker >= first[0]), 0)
            return place(_racks(image), count - n, len(first), self._random, first_partition=n, start=start)
        if len(by_hand) != count - n:
            raise InvalidAssignment(f"{count - n} partitions are to be added, and {len(by_hand)} are placed")
        if any(len(replicas) != len(first) for replicas in by_hand):
            raise InvalidAssignment(f"the partitions of {name} have {len(first)} replicas each; so must the new ones")
        placed = {n + at: replicas for at, replicas in enumerate(by_hand)}
        check_assignments(placed, image.brokers, first=n)
        return placed

    def effective(self, overrides: Mapping[str, str]) -> LogConfig:
        """The settings that hold for a topic that sets these; raises InvalidSetting."""
        try:
            return self.settings.defaults(self.image, self.broker_id).with_overrides(overrides)
        except ConfigError as error:
            raise InvalidSetting(str(error)) from error

    def _check_room(self, n_partitions: int, n_topics: int = 0) -> None:
        most_topics, most = self._config.integer("max.topics"), self._config.integer("max.partitions")
        if n_topics and len(self.image.topics) >= most_topics:
            raise TooMany(f"there are {most_topics} modern topics, all that max.topics allows; delete some")
        n = sum(len(topic.partitions) for topic in self.image.topics.values())
        if n + n_partitions > most * max(1, len(self.image.brokers)):
            raise TooMany(f"{n} partitions and {n_partitions} more are over max.partitions={most}; delete some topics")


def _check_count(n_partitions: int) -> None:
    if not 1 <= n_partitions <= MAX_PARTITIONS:
        raise InvalidPartitions(f"{n_partitions} partitions; a topic has 1 to {MAX_PARTITIONS}")


def _racks(image: ClusterImage) -> dict[int, str | None]:
    return {broker_id: broker.rack for broker_id, broker in image.brokers.items()}
