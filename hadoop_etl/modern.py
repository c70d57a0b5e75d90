"""Modern topics: what has come since 2011 is loaded like the rest (since2011).

A record has a key, a timestamp and headers beside its value, and its offset is a number, not a place in bytes: any
offset is a place to begin, so a range is split anywhere. Partitions belong to the cluster, whoever leads them today;
here they bear the broker id ``MODERN``. Only committed records are read; markers and what was aborted or compacted
away leave holes between the offsets.

Paper: none of this is in it; docs/since-2011.md says what it had instead.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from hadoop_etl.columns import EARLIEST_MS, LATEST_MS, MODERN_COLUMNS
from hadoop_etl.entries import DeadRow, Entries, Rows
from hadoop_etl.errors import LoadError
from hadoop_etl.split import Split
from kafka2011.errors import ConfigError, ConnectionFailed, Kafka2011Error, RequestTimedOut
from kafka2011.types import BrokerAddress, BrokerPartition
from since2011.client.connection import ModernConnection
from since2011.topics.cluster import topic_id
from since2011.wire.codec import NO_UUID, ApiKey, Struct
from since2011.wire.compression import decompress
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import HEADER_SIZE, BatchHeader, crc_is_good, read_header, size_at
from since2011.wire.records import Record, decode_marker, decode_records

MODERN = (1 << 31) - 1
"""The broker id of a partition that belongs to no broker."""

MAX_INFLATED = 256 << 20
_METADATA, _FETCH, _LIST_OFFSETS = 12, 12, 6
_EARLIEST, _LATEST, _COMMITTED = -2, -1, 1
_PASSING = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_LEADER_EPOCH)
"""Answers of a cluster in which a leader has just changed: ask again."""


def is_modern(part: BrokerPartition) -> bool:
    """Tell whether a partition is one of a modern topic."""
    return part.broker_id == MODERN


@dataclass(frozen=True, slots=True)
class ModernTopic:
    """A topic as the cluster describes it: its id, and the address of each partition's leader."""

    id: UUID
    leaders: Mapping[int, tuple[str, int] | None]


class ModernClient:
    """Asks a cluster by any of its modern ports. Thread: one."""

    def __init__(self, address: BrokerAddress, patience_s: float = 120.0) -> None:
        self._address, self._patience_s = address, patience_s
        self._connections: dict[tuple[str, int], ModernConnection] = {}
        self._seen: dict[str, ModernTopic] = {}

    @classmethod
    def parse(cls, text: str) -> ModernClient:
        """``host:port`` of any broker's modern port."""
        host, colon, port = text.strip().rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit()):
            raise ConfigError(f"--modern {text!r} is not HOST:PORT, the modern port of one of the brokers")
        return cls(BrokerAddress(MODERN, host, int(port)))

    @property
    def address(self) -> BrokerAddress:
        """Where the cluster is asked first."""
        return self._address

    def topics(self, names: list[str] | None = None) -> dict[str, ModernTopic]:
        """The modern topics, all or of these names; those of 2011 are read by the other port."""
        asked = None if names is None else [Struct(topic_id=NO_UUID, name=name) for name in names]
        answer = self._at(self._address.host, self._address.port).ask(
            ApiKey.METADATA, _METADATA, Struct(topics=asked, auto_create=False)
        )
        brokers = {broker.id: (broker.host, broker.port) for broker in answer.brokers}
        return {
            topic.name: ModernTopic(topic.topic_id, {p.index: brokers.get(p.leader) for p in topic.partitions})
            for topic in answer.topics
            if not topic.error and not topic.internal and topic.topic_id != topic_id(topic.name)
        }

    def offset(self, topic: str, partition: int, *, earliest: bool) -> int:
        """Where a partition begins, or where its committed records end."""
        one = Struct(index=partition, timestamp=_EARLIEST if earliest else _LATEST)
        body = Struct(isolation=_COMMITTED, topics=[Struct(name=topic, partitions=[one])])
        return int(self._of_leader(topic, partition, ApiKey.LIST_OFFSETS, _LIST_OFFSETS, body).offset)

    def fetch(self, topic: str, partition: int, offset: int, size: int) -> Struct:
        """The answer for one partition: batches from the one that holds ``offset``, and what was aborted of them."""
        one = Struct(index=partition, offset=offset, max_bytes=size)
        topics = [Struct(name=topic, topic_id=NO_UUID, partitions=[one])]
        body = Struct(max_wait_ms=0, min_bytes=0, max_bytes=size, isolation=_COMMITTED, session_id=0, topics=topics)
        body.forgotten, body.rack = [], ""
        return self._of_leader(topic, partition, ApiKey.FETCH, _FETCH, body)

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._seen.clear()

    def _of_leader(self, topic: str, partition: int, key: ApiKey, version: int, body: Struct) -> Struct:
        """What the partition's leader answers; a cluster that elects one, or a broker that is away, is waited for."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                if topic not in self._seen:
                    self._seen |= self.topics([topic])
                leader = self._seen[topic].leaders.get(partition) if topic in self._seen else None
                if leader is None:
                    raise ConnectionFailed(f"{topic} {partition} has no leader now; start its brokers and run again")
                answer: Struct = self._at(*leader).ask(key, version, body).topics[0].partitions[0]
                if answer.error not in _PASSING:
                    break
                reason: Kafka2011Error = ConnectionFailed(f"{topic} {partition}: {ErrorCode(answer.error).name}")
                self._seen.clear()
            except (ConnectionFailed, RequestTimedOut) as error:
                reason = error
                self.close()
            if time.monotonic() > deadline:
                raise reason
            time.sleep(0.2)
        if answer.error:
            raise LoadError(f"{topic} {partition}: the cluster answers {ErrorCode(answer.error).name}; run again")
        return answer

    def _at(self, host: str, port: int) -> ModernConnection:
        if (host, port) not in self._connections:
            self._connections[host, port] = ModernConnection(host, port, client_id="kafka2011-etl")
        return self._connections[host, port]


def read_modern_split(
    topic: str, part: BrokerPartition, address: BrokerAddress, split: Split, chunk_size: int
) -> Iterator[tuple[Entries, int]]:
    """The records of a split, answer by answer, each with the offset it reaches."""
    client, position = ModernClient(address), split.start
    try:
        while position < split.end:
            answer = client.fetch(topic, part.partition, position, chunk_size)
            data, aborted = bytes(answer.records or b""), list(answer.aborted or [])
            entries, reached = read_batches(data, position, split.end, aborted)
            if reached == position:
                raise LoadError(
                    f"{topic} {part.partition}: nothing at offset {position}, which was committed when the load was "
                    "planned. The cluster lost data, or is another one; nothing was published"
                )
            position = reached
            yield entries, position
    finally:
        client.close()


def read_batches(data: bytes, start: int, end: int, aborted: list[Any]) -> tuple[Entries, int]:
    """The committed records of whole batches with offsets from ``start`` to ``end``, and the offset reached."""
    entries, records, position, place = Entries(size=0), list[Record](), start, 0
    open_ones: dict[int, int] = {}
    waiting = sorted(((one.first_offset, one.producer_id) for one in aborted), reverse=True)
    while place + HEADER_SIZE <= len(data) and place + size_at(data, place) <= len(data) and position < end:
        header = read_header(data, place)
        batch = data[place : place + header.size]
        place += header.size
        while waiting and waiting[-1][0] <= header.last_offset:
            first, producer = waiting.pop()
            open_ones[producer] = first
        if header.control:
            marker = decode_marker(batch, header)
            if marker is not None and not marker.committed:
                open_ones.pop(header.producer_id, None)
        elif not (header.transactional and header.producer_id in open_ones):
            try:
                records += [r for r in _records(batch, header) if start <= r.offset < end]
            except Kafka2011Error as error:
                first, last = max(header.base_offset, start), min(header.next_offset, end)
                entries.dead.append(DeadRow(first, 0, last, batch, f"not readable: {error}"))
        position = max(position, min(header.next_offset, end))
    if records:
        entries.rows.append(_columns(records))
    return entries, position


def _records(batch: bytes, header: BatchHeader) -> list[Record]:
    if not crc_is_good(batch, header):
        raise Kafka2011Error("wrong CRC")
    return list(decode_records(batch, header, _inflate))


def _inflate(codec: int, data: bytes) -> bytes:
    return decompress(codec, data, MAX_INFLATED)


def _columns(records: list[Record]) -> Rows:
    offset = np.array([record.offset for record in records], dtype=np.int64)
    times = [record.timestamp if EARLIEST_MS <= record.timestamp <= LATEST_MS else None for record in records]
    own = pa.table(
        [
            pa.array([record.key for record in records], pa.binary()),
            pa.array([None if moment is None else moment * 1000 for moment in times], pa.int64()).cast(
                MODERN_COLUMNS.field("ktime").type
            ),
            pa.array(
                [[{"name": name, "value": value} for name, value in record.headers] for record in records],
                MODERN_COLUMNS.field("kheaders").type,
            ),
        ],
        schema=MODERN_COLUMNS,
    )
    payload = pa.array([record.value for record in records], pa.binary())
    return Rows(offset, np.zeros(len(records), dtype=np.int64), offset + 1, payload, own)
