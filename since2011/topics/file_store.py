"""A lone broker's metadata: one JSON file in the log directory, replaced as a whole.

    write   metadata.json.tmp, forced to disk -> renamed over metadata.json -> the directory forced to disk

So the file is always one that was whole. What cannot be read is named and never written over: the topics' files are
worth nothing without it. Every partition is led by this broker, at epoch 0.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from kafka2011.errors import Kafka2011Error
from since2011.log.files import write_whole
from since2011.topics.errors import InvalidPartitions, TopicExists, UnknownTopic
from since2011.topics.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from since2011.topics.placement import Assignments
from since2011.topics.store import ConfigChange, ImageCallback, Settings, following
from zk_registry.modern.registry import new_id, new_uuid
from zk_registry.modern.texts import PRODUCER_ID_BLOCK, decode_id, encode_id

FILE = "metadata.json"
VERSION = 1


class DamagedMetadata(Kafka2011Error):
    """The file with the topics cannot be read."""


class FileStore:
    """Metadata in a file. Thread: any; changes one at a time."""

    trouble: str | None = None
    replicates = False

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._lock = threading.RLock()
        self._callbacks: list[ImageCallback] = []
        self._image = ClusterImage("")
        self._next_producer_id = 0

    @property
    def image(self) -> ClusterImage:
        return self._image

    def start(self) -> None:
        """Read the file; a new cluster, with an id of its own, if there is none."""
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
            self._write(ClusterImage(new_id()), 0)
            return
        except (OSError, UnicodeDecodeError) as error:
            raise self._damaged(str(error)) from error
        try:
            self._image, self._next_producer_id = parse(text)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from error

    def register(self, broker: BrokerImage) -> None:
        with self._lock:
            self._publish(self._image.with_brokers({broker.broker_id: replace(broker, epoch=0)}))

    def close(self) -> None:
        """There is nobody to leave."""

    def on_change(self, callback: ImageCallback) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    def create_topic(
        self, name: str, assignments: Assignments, settings: Settings, topic_id: UUID | None = None
    ) -> TopicImage:
        with self._lock:
            if name in self._image.topics:
                raise TopicExists(f"{name} is there already")
            topic = TopicImage(name, topic_id or new_uuid(), _partitions(assignments))
            self._write(self._image.with_topics([topic]).with_configs({f"topics/{name}": settings}))
            return topic

    def delete_topic(self, name: str) -> None:
        with self._lock:
            self._known(name)
            self._write(self._image.with_topics((), [name]).with_configs({f"topics/{name}": None}))

    def add_partitions(self, name: str, assignments: Assignments) -> TopicImage:
        with self._lock:
            topic = self._known(name)
            if not following(topic, assignments):
                raise InvalidPartitions(f"{name} has {len(topic.partitions)} partitions by now; ask again")
            grown = replace(topic, partitions=topic.partitions + _partitions(assignments))
            self._write(self._image.with_topics([grown]))
            return grown

    def alter_config(self, entity: str, change: ConfigChange) -> None:
        with self._lock:
            self._write(self._image.with_configs({entity: change(dict(self._image.config(entity)))}))

    def take_producer_ids(self, at_least: int = 0) -> range:
        with self._lock:
            first = max(at_least, self._next_producer_id)
            self._write(self._image, first + PRODUCER_ID_BLOCK)
            return range(first, first + PRODUCER_ID_BLOCK)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _known(self, name: str) -> TopicImage:
        topic = self._image.topics.get(name)
        if topic is None:
            raise UnknownTopic(f"there is no topic {name}")
        return topic

    def _write(self, image: ClusterImage, next_producer_id: int | None = None) -> None:
        ahead = self._next_producer_id if next_producer_id is None else next_producer_id
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, encode(image, ahead).encode())
        self._next_producer_id = ahead
        self._publish(image)

    def _publish(self, image: ClusterImage) -> None:
        if image is not self._image:
            self._image = image
            for callback in tuple(self._callbacks):
                callback(image)

    def _damaged(self, why: str) -> DamagedMetadata:
        return DamagedMetadata(
            f"{self._path} cannot be read ({why}): it says which topics there are. Put back a copy of it; without one, "
            "move it and the directories of log.dirs away, and the broker starts with no modern topics"
        )


def _partitions(assignments: Assignments) -> tuple[PartitionImage, ...]:
    return tuple(
        PartitionImage(replicas, replicas[0], 0, replicas, partition_epoch=0)
        for _, replicas in sorted(assignments.items())
    )


def encode(image: ClusterImage, next_producer_id: int) -> str:
    """The file's text."""
    topics = {
        topic.name: {"topic_id": encode_id(topic.topic_id), "partitions": [list(p.replicas) for p in topic.partitions]}
        for topic in image.topics.values()
    }
    values = {
        "version": VERSION,
        "cluster_id": image.cluster_id,
        "next_producer_id": next_producer_id,
        "topics": topics,
        "configs": {entity: dict(settings) for entity, settings in image.configs.items()},
    }
    return json.dumps(values, indent=1) + "\n"


def parse(text: str) -> tuple[ClusterImage, int]:
    """The image in a file's text, and the first producer id that is free."""
    values: dict[str, Any] = json.loads(text)
    if values["version"] != VERSION:
        raise ValueError(f"version {values['version']!r}; this release knows {VERSION}")
    topics = []
    for name, topic in values["topics"].items():
        rows = {index: tuple(int(broker) for broker in row) for index, row in enumerate(topic["partitions"])}
        topics.append(TopicImage(str(name), decode_id(topic["topic_id"]), _partitions(rows)))
    configs = {
        str(entity): {str(name): str(value) for name, value in settings.items()}
        for entity, settings in values["configs"].items()
    }
    image = ClusterImage(str(values["cluster_id"])).with_topics(topics).with_configs(configs)
    return image, int(values["next_producer_id"])
