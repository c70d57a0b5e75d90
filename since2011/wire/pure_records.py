"""The records of a batch in one go: read, as tuples of the kind a reader gives to its application, and written.

``since2011.wire.records`` reads one record at a time and is for brokers and tools. Here a whole batch is made into what
the caller wants: ``make`` is a NamedTuple type whose fields are those of ``front``, then offset, timestamp, key, value
and headers, then those of ``back``; front and back are numbers and texts.

``_records.c`` is the same, compiled. Read this one, change both, and let ``test_record_walkers.py`` of the property
tests tell whether they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from kafka2011.errors import InvalidMessage

T = TypeVar("T", bound=tuple)  # type: ignore[type-arg]
VERSION = 2
"""Raised together with that of ``_records.c`` whenever a name, an argument or a result changes."""
CREATE_TIME = -1
_LONGEST = 10
"""Bytes of the longest varint: 64 bits, seven at a time."""
_NULL = 1
"""-1 as a zig-zag varint."""


def walk_records(
    body: bytes,
    count: int,
    make: type[T],
    front: tuple[object, ...],
    back: tuple[object, ...],
    base_offset: int,
    base_timestamp: int,
    stamp: int,
) -> list[T]:
    """All ``count`` records of an inflated batch; raises InvalidMessage where they are not what the header says.

    ``stamp``: the timestamp of every record, or CREATE_TIME if each has its own.
    """
    found: list[T] = []
    add, new, varint, size = found.append, tuple.__new__, _varint, len(body)
    pos = 0
    try:
        for number in range(count):
            byte = body[pos]
            if byte < 0x80:
                length, pos = byte >> 1 ^ -(byte & 1), pos + 1
            else:
                length, pos = varint(body, pos)
            end = pos + length
            if length < 0 or end > size:
                raise InvalidMessage(f"record {number} says {length} bytes, {size - pos} are there")
            pos += 1  # the attributes, which nobody uses
            byte = body[pos]
            if byte < 0x80:
                timestamp, pos = byte >> 1 ^ -(byte & 1), pos + 1
            else:
                timestamp, pos = varint(body, pos)
            byte = body[pos]
            if byte < 0x80:
                delta, pos = byte >> 1 ^ -(byte & 1), pos + 1
            else:
                delta, pos = varint(body, pos)
            key: bytes | None
            byte = body[pos]
            if byte == _NULL:
                key, pos = None, pos + 1
            else:
                length, pos = varint(body, pos)
                if not 0 <= length <= end - pos:
                    raise _overrun(number, "key", length, end - pos)
                key = body[pos : pos + length]
                pos += length
            value: bytes | None
            byte = body[pos]
            if byte == _NULL:
                value, pos = None, pos + 1
            else:
                length, pos = varint(body, pos)
                if not 0 <= length <= end - pos:
                    raise _overrun(number, "value", length, end - pos)
                value = body[pos : pos + length]
                pos += length
            headers: tuple[tuple[str, bytes | None], ...] = ()
            if body[pos]:
                headers, pos = _headers(body, pos, end, number)
            else:
                pos += 1
            if pos != end:
                raise InvalidMessage(f"record {number} ends at byte {pos} and said {end}")
            at = base_timestamp + timestamp if stamp == CREATE_TIME else stamp
            add(new(make, (*front, base_offset + delta, at, key, value, headers, *back)))
    except IndexError:
        raise InvalidMessage(f"a batch of {count} records ends inside one of them") from None
    if pos != size:
        raise InvalidMessage(f"{size - pos} bytes are left after the {count} records of a batch")
    return found


def _headers(body: bytes, pos: int, end: int, number: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    n_headers, pos = _varint(body, pos)
    if not 0 <= n_headers <= end - pos:
        raise InvalidMessage(f"record {number} says it has {n_headers} headers")
    found = []
    for _ in range(n_headers):
        length, pos = _varint(body, pos)
        if not 0 <= length <= end - pos:
            raise _overrun(number, "header's key", length, end - pos)
        try:
            name = body[pos : pos + length].decode()
        except UnicodeDecodeError:
            raise InvalidMessage(f"record {number} has a header whose key is not UTF-8") from None
        length, pos = _varint(body, pos + length)
        if not -1 <= length <= end - pos:
            raise _overrun(number, "header", length, end - pos)
        found.append((name, None if length < 0 else body[pos : pos + length]))
        pos += max(length, 0)
    return tuple(found), pos


def _varint(body: bytes, pos: int) -> tuple[int, int]:
    """A zig-zag varint of up to 64 bits and the position after it."""
    raw = shift = 0
    for at in range(pos, min(pos + _LONGEST, len(body))):
        byte = body[at]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> 64:
                break
            return (raw >> 1) ^ -(raw & 1), at + 1
        shift += 7
    raise InvalidMessage(f"a varint at byte {pos} does not end")


def _overrun(number: int, what: str, length: int, left: int) -> InvalidMessage:
    return InvalidMessage(f"record {number} has a {what} of {length} bytes, {left} are there")


def lay_records(
    rows: Sequence[tuple[int, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]], /
) -> tuple[bytes, int]:
    """Lay rows of timestamp, key, value and headers out as today's records, offsets from 0 on; and the latest time.

    What follows a record's length: attributes (0), the time after the first row's, the offset, key, value, headers.
    Lengths and differences are zig-zag varints, the small ones looked up ready; None has length -1.
    """
    ready, limit = _VARINTS, len(_VARINTS)
    first = latest = rows[0][0]
    parts: list[bytes] = []
    for offset, (timestamp, key, value, headers) in enumerate(rows):
        latest = timestamp if timestamp > latest else latest
        delta = timestamp - first
        when = ready[delta] if 0 <= delta < limit else _put_varint(delta)
        number = ready[offset] if offset < limit else _put_varint(offset)
        tail = [ready[0]]
        if headers:
            tail = [_put_varint(len(headers))]
            for name, content in headers:
                tail += (_field(name.encode()), _field(content))
        body = (b"\0", when, number, _field(key), _field(value), *tail)
        parts += (_put_varint(sum(map(len, body))), *body)
    return b"".join(parts), latest


def _put_varint(value: int) -> bytes:
    if 0 <= value < len(_VARINTS):
        return _VARINTS[value]
    left, out = value << 1 if value >= 0 else (~value << 1) | 1, bytearray()
    while left > 0x7F:
        out.append(0x80 | (left & 0x7F))
        left >>= 7
    out.append(left)
    return bytes(out)


_VARINTS: list[bytes] = []
_VARINTS += [_put_varint(value) for value in range(8192)]


def _field(data: bytes | None) -> bytes:
    return _put_varint(-1) if data is None else _put_varint(len(data)) + data


def murmur2(data: bytes | memoryview, /) -> int:
    """Murmur 2 with the seed of Kafka's clients, as an unsigned number of 32 bits."""
    mask, m = 0xFFFF_FFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & mask
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = (int.from_bytes(data[at : at + 4], "little") * m) & mask
        h = ((h * m) & mask) ^ (((k ^ (k >> 24)) * m) & mask)
    if whole < len(data):
        h = ((h ^ int.from_bytes(data[whole:], "little")) * m) & mask
    h = ((h ^ (h >> 13)) * m) & mask
    return h ^ (h >> 15)
