"""The questions of a transaction, one after the other, as bodies of requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from kafka2011.types import TopicPartition
from since2011.client.group_metadata import GroupMetadata, OffsetAndMetadata
from since2011.producer.batch import Identity
from since2011.wire.codec import ApiKey, Struct

OF_GROUP, OF_TRANSACTION = 0, 1

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class Step(Enum):
    """A question: its request, and the newest version we speak."""

    FIND_COORDINATOR = (ApiKey.FIND_COORDINATOR, 3)
    FIND_GROUP_COORDINATOR = (ApiKey.FIND_COORDINATOR, 2)
    INIT_PRODUCER_ID = (ApiKey.INIT_PRODUCER_ID, 5)
    ADD_PARTITIONS = (ApiKey.ADD_PARTITIONS_TO_TXN, 3)
    ADD_OFFSETS = (ApiKey.ADD_OFFSETS_TO_TXN, 4)
    COMMIT_OFFSETS = (ApiKey.TXN_OFFSET_COMMIT, 4)
    END = (ApiKey.END_TXN, 4)


@dataclass(frozen=True, slots=True)
class Node:
    """A broker that may not be in the metadata."""

    id: int
    address: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask, and whom: None for any broker."""

    step: Step
    body: Struct
    node: Node | None


def find_coordinator(key: str, kind: int, step: Step) -> Question:
    return Question(step, Struct(key=key, key_type=kind), None)


def init_producer_id(node: Node | None, transactional_id: str | None, timeout_ms: int, identity: Identity) -> Question:
    body = Struct(
        transactional_id=transactional_id,
        txn_timeout_ms=timeout_ms,
        producer_id=identity.id,
        producer_epoch=identity.epoch,
    )
    return Question(Step.INIT_PRODUCER_ID, body, node)


def add_partitions(
    node: Node, transactional_id: str, identity: Identity, partitions: Iterable[tuple[str, int]]
) -> Question:
    return Question(Step.ADD_PARTITIONS, _of(transactional_id, identity, topics=_by_topic(partitions)), node)


def add_offsets(node: Node, transactional_id: str, identity: Identity, group: str) -> Question:
    return Question(Step.ADD_OFFSETS, _of(transactional_id, identity, group=group), node)


def commit_offsets(
    node: Node, transactional_id: str, identity: Identity, group: GroupMetadata, offsets: Offsets
) -> Question:
    topics: dict[str, list[Struct]] = {}
    for partition, place in offsets.items():
        row = Struct(
            index=partition.partition,
            offset=place.offset,
            leader_epoch=place.leader_epoch,
            metadata=place.metadata,
        )
        topics.setdefault(partition.topic, []).append(row)
    body = _of(
        transactional_id,
        identity,
        group=group.group_id,
        generation=group.generation_id,
        member=group.member_id,
        instance=group.group_instance_id,
        topics=[Struct(name=name, partitions=rows) for name, rows in topics.items()],
    )
    return Question(Step.COMMIT_OFFSETS, body, node)


def end(node: Node, transactional_id: str, identity: Identity, *, commit: bool) -> Question:
    return Question(Step.END, _of(transactional_id, identity, commit=commit), node)


def _of(transactional_id: str, identity: Identity, **fields: object) -> Struct:
    return Struct(transactional_id=transactional_id, producer_id=identity.id, epoch=identity.epoch, **fields)


def _by_topic(partitions: Iterable[tuple[str, int]]) -> list[Struct]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return [Struct(name=name, partitions=numbers) for name, numbers in topics.items()]


__all__ = ["GroupMetadata", "Node", "OffsetAndMetadata", "Offsets", "Question", "Step"]
