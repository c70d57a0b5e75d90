"""Where a cluster's metadata lives: one interface, two stores.

| store | for | kept in | others learn of a change by |
|---|---|---|---|
| ``ZooKeeperStore`` | brokers with ``zk.connect`` | the nodes real Kafka writes, below a chroot | watches |
| ``FileStore`` | a lone broker | ``metadata.json`` in the log directory | there are no others |

Reading is ``store.image``: the newest that is known, without waiting. Changing waits for the store and belongs in a
thread; when it returns, the image has the change. Who is refused gets a ``TopicError`` with a sentence; a
``RegistryError`` or ``OSError`` says that the store itself failed.

Rules (names, placement, settings) are applied before a store is asked: a store writes what it is told, if nobody was
faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol
from uuid import UUID

from since2011.topics.image import BrokerImage, ClusterImage, TopicImage
from since2011.topics.placement import Assignments

ImageCallback = Callable[[ClusterImage], None]
Settings = Mapping[str, str]
ConfigChange = Callable[[dict[str, str]], Settings]
"""The settings that are to be, from those that are; called again if somebody was faster. May raise TopicError."""


class MetadataStore(Protocol):
    """Metadata of a cluster. Thread: any."""

    @property
    def image(self) -> ClusterImage:
        """The newest known. Before ``start`` there is none to speak of."""

    @property
    def replicates(self) -> bool:
        """Whether there can be other brokers, and so more than one copy of a partition."""

    @property
    def trouble(self) -> str | None:
        """Why changes cannot be made or seen now, in words; None if they can."""

    def start(self) -> None:
        """Read everything; raises if that cannot be."""

    def register(self, broker: BrokerImage) -> None:
        """Be a living broker of the cluster from now on, at these endpoints."""

    def close(self) -> None:
        """Leave the cluster at once."""

    def on_change(self, callback: ImageCallback) -> Callable[[], None]:
        """Call ``callback(image)``, in any thread, after each change; return a function that ends it."""

    def create_topic(
        self, name: str, assignments: Assignments, settings: Settings, topic_id: UUID | None = None
    ) -> TopicImage:
        """Make a topic; TopicExists if there is one. It is led when this returns, where that takes no time."""

    def delete_topic(self, name: str) -> None:
        """Remove a topic and its settings; UnknownTopic if there is none."""

    def add_partitions(self, name: str, assignments: Assignments) -> TopicImage:
        """Give a topic these partitions besides those it has; InvalidPartitions if they do not follow on."""

    def alter_config(self, entity: str, change: ConfigChange) -> None:
        """Change the settings of ``topics/<name>``, ``brokers/<id>``, ``brokers/<default>``, ``clients/<name>`` …"""

    def take_producer_ids(self, at_least: int = 0) -> range:
        """A block of producer ids nobody else is given, none below ``at_least``."""


def following(topic: TopicImage, assignments: Assignments) -> bool:
    """Whether these partitions come right after those the topic has."""
    n = len(topic.partitions)
    return sorted(assignments) == list(range(n, n + len(assignments)))
