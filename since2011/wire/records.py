"""Records inside a batch: key, value, headers, a timestamp and an offset, each relative to the batch's.

A record: length, attributes (0), timestamp delta, offset delta, key length, key, value length, value, number of
headers, headers; lengths and deltas are zig-zag varints, length -1 is null. The paper's answer: a message is a payload
and nothing else (§3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kafka2011.errors import InvalidMessage
from since2011.wire import record_walk
from since2011.wire.record_batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_SIZE,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    Buffer,
    make_batch,
)
from since2011.wire.varint import get_varint, put_varint

Header = tuple[str, bytes | None]
Row = tuple[int, bytes | None, bytes | None, Sequence[Header]]
"""Timestamp, key, value and headers of a record that has no offset yet."""
Inflate = Callable[[int, bytes], bytes]
"""Opens a compressed block: codec and bytes to bytes. It bounds what comes out."""
Deflate = Callable[[int, bytes], bytes]

ABORT, COMMIT = 0, 1
_MARKER_KEY_SIZE = 4


class Record(NamedTuple):
    """One record of a log."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()


class Marker(NamedTuple):
    """What a control batch says."""

    committed: bool
    coordinator_epoch: int


def decode_records(batch: Buffer, header: BatchHeader, inflate: Inflate) -> Iterator[Record]:
    """The records of a whole batch, one by one; raises InvalidMessage where they are not what the header says."""
    body: Buffer = memoryview(batch)[HEADER_SIZE : header.size]
    if header.codec:
        body = inflate(header.codec, bytes(body))
    data = bytes(body)
    pos = 0
    for number in range(header.n_records):
        record, pos = _decode_record(data, pos, header, number)
        yield record
    if pos != len(data):
        raise InvalidMessage(f"{len(data) - pos} bytes are left after the {header.n_records} records of a batch")


def _decode_record(data: bytes, pos: int, header: BatchHeader, number: int) -> tuple[Record, int]:
    try:
        length, pos = get_varint(data, pos)
        end = pos + length
        if length < 0 or end > len(data):
            raise InvalidMessage(f"record {number} says {length} bytes, {len(data) - pos} are there")
        timestamp_delta, pos = get_varint(data, pos + 1)  # after the attributes, which nobody uses
        offset_delta, pos = get_varint(data, pos)
        key, pos = _nullable(data, pos, end)
        value, pos = _nullable(data, pos, end)
        n_headers, pos = get_varint(data, pos)
        if not 0 <= n_headers <= end - pos:
            raise InvalidMessage(f"record {number} says it has {n_headers} headers")
        found: list[Header] = []
        for _ in range(n_headers):
            name, pos = _nullable(data, pos, end)
            if name is None:
                raise InvalidMessage(f"record {number} has a header without a key")
            content, pos = _nullable(data, pos, end)
            found.append((name.decode("utf-8"), content))
    except UnicodeDecodeError as error:
        raise InvalidMessage(f"record {number} has a header whose key is not UTF-8") from error
    if pos != end:
        raise InvalidMessage(f"record {number} ends at byte {pos} and said {end}")
    timestamp = header.max_timestamp if header.append_time else header.base_timestamp + timestamp_delta
    return Record(header.base_offset + offset_delta, timestamp, key, value, tuple(found)), end


def _nullable(data: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    length, pos = get_varint(data, pos)
    if length < -1 or length > end - pos:
        raise InvalidMessage(f"a field says {length} bytes, {end - pos} are there")
    return (None, pos) if length < 0 else (data[pos : pos + length], pos + length)


def encode_records(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    last_offset_delta: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    leader_epoch: int = NO_EPOCH,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    deflate: Deflate | None = None,
) -> bytes:
    """One batch of ``records``; what is not given is worked out from them. Without records: a bare header."""
    first = records[0].offset if records else 0
    offset = first if base_offset is None else base_offset
    origin = base_timestamp
    if origin is None:
        origin = records[0].timestamp if records else NO_TIMESTAMP
    if last_offset_delta is None:
        last_offset_delta = records[-1].offset - offset
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    body = bytearray()
    for record in records:
        put_record(body, record, offset, origin)
    codec = attributes & CODEC_MASK
    if codec and records:
        if deflate is None:
            raise ValueError("a compressed batch needs a way to compress")
        content = deflate(codec, bytes(body))
    else:
        attributes &= ~CODEC_MASK
        content = bytes(body)
    header = BatchHeader(
        offset,
        0,
        leader_epoch,
        2,
        0,
        attributes,
        last_offset_delta,
        origin,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return make_batch(header, content)


def encode_rows(
    rows: Sequence[Row],
    *,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    deflate: Deflate | None = None,
) -> bytes:
    """A producer's batch: offsets from 0 on, without a leader epoch; what the broker decides it writes itself."""
    body, latest = record_walk.lay_records(rows)
    codec = attributes & CODEC_MASK
    if codec:
        assert deflate is not None, "a compressed batch needs a way to compress"
        body = deflate(codec, body)
    header = BatchHeader(
        0, 0, NO_EPOCH, 2, 0, attributes, len(rows) - 1, rows[0][0], latest,
        producer_id, producer_epoch, base_sequence, len(rows),
    )  # fmt: skip
    return make_batch(header, body)


def put_record(out: bytearray, record: Record, base_offset: int, base_timestamp: int) -> None:
    """Append one record, relative to its batch."""
    body = bytearray(b"\0")
    put_varint(body, record.timestamp - base_timestamp)
    put_varint(body, record.offset - base_offset)
    _put_nullable(body, record.key)
    _put_nullable(body, record.value)
    put_varint(body, len(record.headers))
    for name, content in record.headers:
        _put_nullable(body, name.encode())
        _put_nullable(body, content)
    put_varint(out, len(body))
    out += body


def _put_nullable(out: bytearray, value: bytes | None) -> None:
    if value is None:
        put_varint(out, -1)
    else:
        put_varint(out, len(value))
        out += value


def encode_marker(
    marker: Marker, *, producer_id: int, producer_epoch: int, timestamp: int, offset: int = 0, leader_epoch: int = -1
) -> bytes:
    """The control batch that ends a transaction: 78 bytes."""
    key = b"\0\0" + (COMMIT if marker.committed else ABORT).to_bytes(2, "big")
    value = b"\0\0" + marker.coordinator_epoch.to_bytes(4, "big", signed=True)
    return encode_records(
        [Record(offset, timestamp, key, value)],
        leader_epoch=leader_epoch,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def decode_marker(batch: Buffer, header: BatchHeader) -> Marker | None:
    """What a control batch says; None for a kind nobody here knows, or a batch the cleaner has emptied."""
    if header.n_records == 0:
        return None
    if header.n_records != 1:
        raise InvalidMessage(f"the control batch at offset {header.base_offset} has {header.n_records} records, not 1")
    (record,) = decode_records(batch, header, _never_compressed)
    key, value = record.key or b"", record.value or b""
    if len(key) < _MARKER_KEY_SIZE or len(value) < 6:
        raise InvalidMessage(f"the control batch at offset {header.base_offset} is too short to be a marker")
    kind = int.from_bytes(key[2:4], "big", signed=True)
    if kind not in (ABORT, COMMIT):
        return None
    return Marker(kind == COMMIT, int.from_bytes(value[2:6], "big", signed=True))


def _never_compressed(codec: int, data: bytes) -> bytes:
    raise InvalidMessage("a control batch is compressed; no broker writes one")
