"""Records of a modern topic for the page: fetched as the batches that lie on disk, taken apart field by field.

The paper's answer: a message set of messages, each with its own CRC and found by adding lengths (§3.1). Today a batch
has one CRC for all its records, offsets count records, and an index leads to the batch.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

from classroom.observatory.messages import Decoder, shown
from kafka2011.errors import Kafka2011Error
from since2011.client.connection import ModernConnection
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.compression import decompress
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import HEADER_SIZE, BatchHeader, crc_is_good, headers
from since2011.wire.records import Record, decode_records, encode_records

EARLIEST, LATEST = -2, -1
MOST = 300 * 1024
_INFLATED = 8 << 20
_PREVIEW = 2_048
_FIELDS = (
    ("base offset", 8),
    ("length", 4),
    ("leader epoch", 4),
    ("magic", 1),
    ("crc", 4),
    ("attributes", 2),
    ("last offset delta", 4),
    ("base timestamp", 8),
    ("max timestamp", 8),
    ("producer id", 8),
    ("producer epoch", 2),
    ("base sequence", 4),
    ("records", 4),
)
"""The header of a batch and the width of each field."""
_CODECS = {0: "not compressed", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


class NotServed(Kafka2011Error):
    """The broker refused, and said why."""


class ModernPartition:
    """One partition on one broker's modern port. Thread: one."""

    def __init__(self, host: str, port: int, topic: str, partition: int) -> None:
        self._where, self._topic, self._partition = (host, port), topic, partition

    def offset_at(self, timestamp: int) -> int:
        """The first offset at or after a time; EARLIEST or LATEST."""
        wanted = Struct(index=self._partition, timestamp=timestamp)
        body = Struct(replica_id=-1, isolation=0, topics=[Struct(name=self._topic, partitions=[wanted])])
        found = self._ask(ApiKey.LIST_OFFSETS, 6, body).topics[0].partitions[0]
        self._check(found.error)
        return int(found.offset)

    def batches(self, offset: int) -> list[tuple[BatchHeader, bytes]]:
        """Whole batches from the one that holds ``offset``."""
        wanted = Struct(index=self._partition, offset=offset, max_bytes=MOST)
        body = Struct(
            max_wait_ms=0, min_bytes=0, max_bytes=MOST, isolation=0, session_id=0, rack="", forgotten=[],
            topics=[Struct(name=self._topic, partitions=[wanted])],
        )  # fmt: skip
        found = self._ask(ApiKey.FETCH, 12, body).topics[0].partitions[0]
        self._check(found.error)
        data = bytes(found.records or b"")
        return [(header, data[at : at + header.size]) for at, header in headers(data) if at + header.size <= len(data)]

    def produce(self, record: Record) -> int:
        """Store one record, acknowledged by all replicas in sync; its offset."""
        wanted = Struct(index=self._partition, records=encode_records([record]))
        topics = [Struct(name=self._topic, partitions=[wanted])]
        body = Struct(transactional_id=None, acks=-1, timeout_ms=5_000, topics=topics)
        found = self._ask(ApiKey.PRODUCE, 9, body).topics[0].partitions[0]
        self._check(found.error)
        return int(found.base_offset)

    def _ask(self, key: ApiKey, version: int, body: Struct) -> Struct:
        with closing(ModernConnection(*self._where, client_id="observatory", timeout_s=8)) as connection:
            return connection.ask(key, version, body)

    def _check(self, error: int) -> None:
        if error:
            raise NotServed(f"{self._topic} {self._partition}: the broker answers {ErrorCode(error).name}")


def taken_apart(header: BatchHeader, batch: bytes, record: Record, decode: Decoder) -> dict[str, Any]:
    """One record and the batch it lies in, as Browse shows them."""
    good = crc_is_good(batch, header)
    value = record.value or b""
    decoded, form = shown(value, decode)
    text = json.dumps(decoded) if decoded is not None else value[:200].decode("utf-8", "replace")
    return {
        "era": "modern",
        "offset": record.offset,
        "next_offset": record.offset + 1,
        "size": header.size,
        "bad": None if good else "the CRC of its batch does not match",
        "parts": _parts(header, batch, good),
        "decoded": decoded,
        "format": form,
        "text": "tombstone: no value" if record.value is None else text[:200],
        "value": value[:_PREVIEW].hex(),
        "key": None if record.key is None else record.key[:200].decode("utf-8", "replace"),
        "headers": [[name, (held or b"")[:200].decode("utf-8", "replace")] for name, held in _named(record)],
        "timestamp": record.timestamp,
        "tombstone": record.value is None,
        "batch": [header.base_offset, header.last_offset, header.n_records],
    }


def records_of(header: BatchHeader, batch: bytes) -> list[Record]:
    """The records of one batch, opened if it is compressed; none of a control batch, which has no user's data."""
    if header.control:
        return []
    return list(decode_records(batch, header, lambda codec, data: decompress(codec, data, _INFLATED)))


def _named(record: Record) -> list[tuple[str, bytes | None]]:
    return [(str(name), held) for name, held in record.headers]


def _parts(header: BatchHeader, batch: bytes, good: bool) -> list[list[str]]:
    """Each field of the header with its bytes and its meaning, then the records as they are stored."""
    says = {
        "length": f"{header.length} bytes follow",
        "crc": "matches" if good else "does NOT match",
        "attributes": _CODECS.get(header.codec, "unknown codec") + (", transactional" if header.transactional else ""),
        "records": f"{header.n_records} in this batch",
    }
    parts, at = [], 0
    for (name, width), number in zip(_FIELDS, header, strict=True):
        parts.append([name, batch[at : at + width].hex(), says.get(name, f"{number:,}")])
        at += width
    parts.append(["payload", batch[HEADER_SIZE:][:_PREVIEW].hex(), f"{len(batch) - HEADER_SIZE} bytes of records"])
    return parts
