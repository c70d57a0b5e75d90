"""Record batches, version 2: read what producers send, write what fetchers are served.

    pos width            pos width                   pos width
      0   8 base offset   21   2 attributes           43   8 producer id, -1 none
      8   4 length        23   4 last offset delta    51   2 producer epoch
     12   4 leader epoch  27   8 base timestamp       53   4 base sequence
     16   1 magic = 2     35   8 max timestamp        57   4 record count
     17   4 CRC-32C over everything from 21           61     records, compressed as one block

A record: length, attributes, timestamp delta, offset delta, key, value, headers; lengths and deltas are zig-zag
varints. A 2011 message keeps the value only, so that is all that is kept here; keys and headers are walked over and
counted.

See docs/modern-port.md; §1.7 (offsets of a byte-addressed log).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fastcrc import crc32

from kafka2011.errors import InvalidMessage, Kafka2011Error
from kafka2011.wire import Budget
from since2011.wire.compression import decompress

_HEAD = struct.Struct(">qiibIhiqqqhii")
_AFTER_LENGTH = 49
"""The smallest legal ``length``: a batch without records."""
_TAIL = struct.Struct(">hiqqqhii")
_FRONT = struct.Struct(">qiibI")
_CRC_FROM = 21
HEAD_SIZE = _HEAD.size

_CODEC, _TRANSACTIONAL, _CONTROL = 0x07, 0x10, 0x20
NO_PRODUCER = -1
_NULL = 1
"""-1 as a zig-zag varint."""
MAX_RECORDS = 500_000


class OldMessageFormat(Kafka2011Error):
    """Message formats 0 and 1, which no version of Produce offered here may carry."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a producer sent as one batch."""

    values: list[bytes | None]
    codec: int
    transactional: bool
    control: bool
    producer_id: int
    producer_epoch: int
    base_sequence: int
    n_keys: int
    """Records with a key: the key has chosen the partition and is not kept."""
    n_headers: int
    n_records: int
    n_nulls: int

    def without_values(self) -> Batch:
        """What it says of itself, without the records."""
        return replace(self, values=[])


def decode_batches(data: bytes, limit: int) -> list[Batch]:
    """Read every batch of one partition; ``limit`` bounds what one may inflate to. Raises as ``each_batch`` does."""
    return list(each_batch(data, limit, Budget(len(data) * limit, MAX_RECORDS)))


def each_batch(data: bytes, limit: int, budget: Budget) -> Iterator[Batch]:
    """Read the batches of one partition of a Produce request, each when it is asked for.

    ``limit`` bounds what one may inflate to, ``budget`` what all of the request may. Raises InvalidMessage on damage,
    SetTooLarge, OldMessageFormat, UnknownCompression.
    """
    pos = 0
    while pos < len(data):
        if len(data) - pos < 17:
            raise InvalidMessage(f"a record batch ends after {len(data) - pos} bytes, inside its header")
        magic = data[pos + 16]
        if magic != 2:
            raise OldMessageFormat(f"a record batch of magic {magic}; versions of Produce from 3 on carry magic 2 only")
        (size,) = struct.unpack_from(">i", data, pos + 8)
        if size < _AFTER_LENGTH or size > len(data) - pos - 12:
            raise InvalidMessage(f"a record batch says {size} bytes, {len(data) - pos - 12} are there")
        yield _decode_batch(data[pos : pos + 12 + size], limit, budget)
        pos += 12 + size


def _decode_batch(data: bytes, limit: int, budget: Budget) -> Batch:
    (_, _, _, _, crc, attributes, last_delta, _, _, producer_id, epoch, sequence, count) = _HEAD.unpack_from(data)
    if crc32.iscsi(data[_CRC_FROM:]) != crc:
        raise InvalidMessage(f"a record batch of {len(data)} bytes fails its CRC-32C: send it again")
    if count < 0 or last_delta != count - 1:
        raise InvalidMessage(f"a record batch of {count} records has last offset delta {last_delta}")
    budget.count(count)
    codec = attributes & _CODEC
    body = decompress(codec, data[HEAD_SIZE:], min(limit, budget.inflated))
    if codec:
        budget.spend(len(body))
    values, n_keys, n_headers = _records(body, count)
    return Batch(
        values,
        codec,
        bool(attributes & _TRANSACTIONAL),
        bool(attributes & _CONTROL),
        producer_id,
        epoch,
        sequence,
        n_keys,
        n_headers,
        count,
        values.count(None),
    )


def _records(body: bytes, count: int) -> tuple[list[bytes | None], int, int]:
    values: list[bytes | None] = []
    pos = n_keys = n_headers = 0
    varint = _varint  # this loop runs once per record produced
    try:
        for number in range(count):
            size, pos = varint(body, pos)
            end = pos + size
            if size < 0 or end > len(body):
                raise InvalidMessage(f"record {number} says {size} bytes, {len(body) - pos} are there")
            _, pos = varint(body, pos + 1)  # the timestamp, after the attributes nobody uses
            delta, pos = varint(body, pos)
            if delta != number:
                raise InvalidMessage(f"record {number} has offset delta {delta}; a producer numbers from 0")
            if body[pos] == _NULL:
                pos += 1
            else:
                key_size, pos = varint(body, pos)
                pos += max(key_size, 0)
                n_keys += 1
            value_size, pos = varint(body, pos)
            if value_size > end - pos:
                raise InvalidMessage(f"record {number} has a value of {value_size} bytes that overruns it")
            if value_size >= 0:
                values.append(body[pos : pos + value_size])
                pos += value_size
            else:
                values.append(None)
            if body[pos]:
                headers, pos = varint(body, pos)
                n_headers += max(headers, 0)
                pos = _skip_headers(body, pos, end, headers)
            else:
                pos += 1
            if pos != end:
                raise InvalidMessage(f"record {number} ends at byte {pos} of its batch and should end at {end}")
    except IndexError:
        raise InvalidMessage(f"a record batch of {count} records ends inside one of them") from None
    if pos != len(body):
        raise InvalidMessage(f"a record batch has {len(body) - pos} bytes after its last record")
    return values, n_keys, n_headers


def _skip_headers(body: bytes, pos: int, end: int, headers: int) -> int:
    if headers < 0 or headers > end - pos:
        raise InvalidMessage(f"a record says it has {headers} headers in {end - pos} bytes")
    for _ in range(2 * headers):
        size, pos = _varint(body, pos)
        pos += max(size, 0)
    return pos


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    """A zig-zag varint and the position after it."""
    value = data[pos]
    if value < 0x80:
        return value >> 1 ^ -(value & 1), pos + 1
    byte = data[pos + 1]
    if byte < 0x80:
        value += (byte << 7) - 0x80
        return value >> 1 ^ -(value & 1), pos + 2
    value, shift = value & 0x7F | (byte & 0x7F) << 7, 14
    pos += 1
    while True:
        pos += 1
        byte = data[pos]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), pos + 1
        shift += 7
        if shift > 63:
            raise InvalidMessage(f"a varint at byte {pos} of a record batch does not end")


def put_varint(value: int) -> bytes:
    """A zig-zag varint."""
    value = value << 1 ^ value >> 63
    if value < 0x80:
        return _ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = [bytes((byte,)) for byte in range(128)]


def encode_batch(base_offset: int, last_offset: int, records: Sequence[tuple[int, bytes]]) -> bytes:
    """Write one batch of (offset, value) without keys, headers or timestamps, as a 2011 log holds them.

    ``last_offset`` may lie after the last record: clients ask for the offset after it next.
    """
    parts: list[bytes] = []
    sizes: dict[int, bytes] = {}
    for offset, value in records:
        delta, size = put_varint(offset - base_offset), len(value)
        width = sizes.get(size) or sizes.setdefault(size, put_varint(size))
        whole = len(delta) + len(width) + size + 4
        # attributes 0, timestamp delta 0, offset delta, key null (-1), value, no headers
        head = sizes.get(whole) or sizes.setdefault(whole, put_varint(whole))
        parts.append(b"%b\0\0%b\x01%b%b\0" % (head, delta, width, value))
    tail = _TAIL.pack(0, last_offset - base_offset, -1, -1, NO_PRODUCER, -1, -1, len(records))
    rest = tail + b"".join(parts)
    return _FRONT.pack(base_offset, len(rest) + 9, 0, 2, crc32.iscsi(rest)) + rest
