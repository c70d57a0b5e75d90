"""The bodies of the three requests a reader sends to leaders. The versions are the lowest that say all we need.

Fetch 12, ListOffsets 7 and OffsetForLeaderEpoch 4 are spoken by every broker from Kafka 2.8 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from kafka2011.types import TopicPartition
from since2011.client.fetch.session import Row, SessionRequest
from since2011.client.fetch.settings import FetchSettings
from since2011.wire.codec import ApiKey, Struct

VERSIONS = {ApiKey.FETCH: 12, ApiKey.LIST_OFFSETS: 7, ApiKey.OFFSET_FOR_LEADER_EPOCH: 4}


class Asked(NamedTuple):
    """A partition in a request, and which turn of its position the answer is for."""

    partition: TopicPartition
    turn: int
    row: Row
    time: int = 0


class Ask(NamedTuple):
    """A request that is due."""

    broker: int
    key: ApiKey
    body: Struct
    about: tuple[Asked, ...]


def fetch_body(settings: FetchSettings, request: SessionRequest) -> Struct:
    """A Fetch of what the session says."""
    topics: dict[str, list[Struct]] = {}
    for partition, row in request.rows.items():
        topics.setdefault(partition.topic, []).append(
            Struct(
                index=partition.partition,
                leader_epoch=row.leader_epoch,
                offset=row.offset,
                last_epoch=row.last_epoch,
                log_start=-1,
                max_bytes=row.max_bytes,
            )
        )
    return Struct(
        replica_id=-1,
        max_wait_ms=settings.fetch_max_wait_ms,
        min_bytes=settings.fetch_min_bytes,
        max_bytes=settings.fetch_max_bytes,
        isolation=settings.isolation,
        session_id=request.session_id,
        session_epoch=request.epoch,
        topics=[Struct(name=name, partitions=rows) for name, rows in topics.items()],
        forgotten=_by_topic(request.forgotten),
        rack=settings.client_rack,
    )


def list_offsets_body(times: Mapping[TopicPartition, tuple[int, int]], isolation: int) -> Struct:
    """A ListOffsets of (time, leader epoch) per partition."""
    topics = [
        Struct(
            name=name,
            partitions=[Struct(index=p.partition, leader_epoch=times[p][1], timestamp=times[p][0]) for p in partitions],
        )
        for name, partitions in groupby(sorted(times), key=lambda partition: partition.topic)
    ]
    return Struct(replica_id=-1, isolation=isolation, topics=topics)


def epochs_body(asked: Iterable[Asked]) -> Struct:
    """An OffsetForLeaderEpoch for the last epoch that was read of each partition."""
    rows = {one.partition: one.row for one in asked}
    topics = [
        Struct(
            name=name,
            partitions=[
                Struct(index=p.partition, current_epoch=rows[p].leader_epoch, epoch=rows[p].last_epoch)
                for p in partitions
            ],
        )
        for name, partitions in groupby(sorted(rows), key=lambda partition: partition.topic)
    ]
    return Struct(replica_id=-1, topics=topics)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[Struct]:
    return [
        Struct(name=name, partitions=[p.partition for p in each])
        for name, each in groupby(sorted(partitions), key=lambda partition: partition.topic)
    ]
