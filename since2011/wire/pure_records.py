"""The records of a batch in one go, as tuples of the kind a reader gives to its application.

``since2011.wire.records`` reads one record at a time and is for brokers and tools. Here a whole batch is made into what
the caller wants: ``make`` is a NamedTuple type whose fields are those of ``front``, then offset, timestamp, key, value
and headers, then those of ``back``; front and back are numbers and texts.

``_records.c`` is the same, compiled. Read this one, change both, and let ``test_record_walkers.py`` of the property
tests tell whether they agree.
"""

from __future__ import annotations

from typing import TypeVar

from kafka2011.errors import InvalidMessage

T = TypeVar("T", bound=tuple)  # type: ignore[type-arg]
VERSION = 1
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
