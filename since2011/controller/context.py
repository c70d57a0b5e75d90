"""What the controller knows: living brokers, topics with the state of each partition, and what is under way.

It is the content of the nodes as last read or written, and nothing else: another controller that reads the nodes knows
the same. Only one thread touches it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from kafka2011.types import TopicPartition
from since2011.controller.outbox import Outbox
from since2011.topics.image import ZERO_ID, BrokerImage
from zk_registry.modern.texts import NO_LEADER, Assignment, PartitionState


@dataclass(slots=True)
class Partition:
    """One partition as its nodes have it. Without a state it is new: no replica was alive when it was made."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    state: PartitionState | None = None
    version: int = -1
    """Of the state's node."""

    @property
    def target(self) -> tuple[int, ...]:
        """Where it is to lie when the move under way is done; where it lies, if none is."""
        return tuple(one for one in self.replicas if one not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """Where it lay before the move under way."""
        return tuple(one for one in self.replicas if one not in self.adding)

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)


@dataclass(slots=True)
class Topic:
    """A topic and its partitions by number."""

    name: str
    topic_id: UUID = ZERO_ID
    partitions: dict[int, Partition] = field(default_factory=dict)
    version: int = -1
    """Of the topic's node."""

    def assignment(self) -> Assignment:
        """What its node is to say."""
        parts = self.partitions
        return Assignment(
            {index: part.replicas for index, part in parts.items()},
            None if self.topic_id == ZERO_ID else self.topic_id,
            {index: part.adding for index, part in parts.items() if part.adding},
            {index: part.removing for index, part in parts.items() if part.removing},
        )


@dataclass(slots=True)
class Deletion:
    """A topic being deleted: the replicas that have not said yet that they are gone."""

    waiting: set[tuple[int, TopicPartition]] = field(default_factory=set)


class Rules(Protocol):
    """What settings say, as they are now. The broker's are the defaults; a topic's own come first."""

    def unclean(self, topic: str) -> bool:
        """Whether one that is behind may lead ``topic`` when no other can (``unclean.leader.election.enable``)."""

    @property
    def deletes(self) -> bool:
        """Whether topics may be deleted (``delete.topic.enable``)."""


@dataclass(slots=True)
class Counts:
    """Elections a broker has held, through all its terms of office."""

    elections: int = 0
    unclean: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Context:
    """Everything a controller knows while it is in office."""

    broker_id: int
    epoch: int
    """The how-many-eth controller it is."""
    epoch_version: int
    """Of the node that says so: every write checks it, and so a later controller ends what an earlier one does."""
    rules: Rules
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    shutting_down: set[int] = field(default_factory=set)
    """Registered still, but about to leave: they lead nothing new."""
    failed: set[tuple[int, TopicPartition]] = field(default_factory=set)
    """Replicas on a disk that failed, on a broker that lives."""
    topics: dict[str, Topic] = field(default_factory=dict)
    deletions: dict[str, Deletion] = field(default_factory=dict)
    watched: set[str] = field(default_factory=set)
    """Where a watch is set that has not fired: two at one path would only both fire."""
    asked_by_node: set[TopicPartition] = field(default_factory=set)
    """Moves that the reassignment node asks for; it goes when they are done."""
    outbox: Outbox = field(default_factory=Outbox)
    counts: Counts = field(default_factory=Counts)

    def watch(self, path: str) -> bool:
        """Whether a read of ``path`` is to leave a watch: not if there is one."""
        if path in self.watched:
            return False
        self.watched.add(path)
        return True

    def partition(self, key: TopicPartition) -> Partition | None:
        """One partition, if it is known."""
        topic = self.topics.get(key.topic)
        return None if topic is None else topic.partitions.get(key.partition)

    def __getitem__(self, key: TopicPartition) -> Partition:
        return self.topics[key.topic].partitions[key.partition]

    def partitions(self) -> Iterator[tuple[TopicPartition, Partition]]:
        """Every partition of every topic that is not being deleted."""
        for name, topic in self.topics.items():
            if name not in self.deletions:
                for index, partition in topic.partitions.items():
                    yield TopicPartition(name, index), partition

    def of_brokers(self, brokers: Collection[int]) -> list[TopicPartition]:
        """The partitions of which one of these holds a replica."""
        wanted = set(brokers)
        return [key for key, partition in self.partitions() if not wanted.isdisjoint(partition.replicas)]

    def present(self, key: TopicPartition, replicas: Iterable[int]) -> set[int]:
        """Of these replicas those that live, if only until their broker has shut down."""
        return {one for one in replicas if one in self.brokers and (one, key) not in self.failed}

    def alive(self, key: TopicPartition, replicas: Iterable[int]) -> set[int]:
        """Of these replicas those that may lead."""
        return self.present(key, replicas) - self.shutting_down

    def leader(self, key: TopicPartition) -> int:
        """Who leads; -1: nobody."""
        state = self[key].state
        return NO_LEADER if state is None or state.leader not in self.brokers else state.leader

    def forget(self, topics: Iterable[str]) -> None:
        """These topics are no more."""
        for name in topics:
            self.topics.pop(name, None)
            self.deletions.pop(name, None)
            self.asked_by_node = {key for key in self.asked_by_node if key.topic != name}
            self.failed = {(broker, key) for broker, key in self.failed if key.topic != name}


def topic_of(name: str, assignment: Assignment, version: int, before: Topic | None = None) -> Topic:
    """A topic as its node has it, with the states that were known of its partitions."""
    topic = Topic(name, assignment.topic_id or ZERO_ID, version=version)
    known: Mapping[int, Partition] = {} if before is None else before.partitions
    for index, replicas in sorted(assignment.partitions.items()):
        partition = Partition(replicas, assignment.adding.get(index, ()), assignment.removing.get(index, ()))
        if index in known:
            partition.state, partition.version = known[index].state, known[index].version
        topic.partitions[index] = partition
    return topic
