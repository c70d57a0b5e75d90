"""The field types of requests: big-endian integers and strings of i16 length (docs/protocol.md)."""

from __future__ import annotations

import struct

from kafka2011.errors import BY_CODE, InvalidRequest, Kafka2011Error, OffsetOutOfRange, UnknownError, WrongPartition

I16 = struct.Struct(">h")
I32 = struct.Struct(">i")
I64 = struct.Struct(">q")
HEADER = struct.Struct(">ih")
"""Size and key of a request; size and error code of an answer. The size counts everything after itself."""


def encode_string(text: str) -> bytes:
    """Length in bytes, then UTF-8."""
    data = text.encode("utf-8")
    if len(data) > 32767:
        raise InvalidRequest(f"a string of {len(data)} bytes does not fit a request; the most is 32767")
    return I16.pack(len(data)) + data


def read_string(frame: bytes, pos: int) -> tuple[str, int]:
    """The string at ``pos`` and the position after it."""
    (size,) = I16.unpack_from(frame, pos)
    end = pos + 2 + size
    if size < 0 or end > len(frame):
        raise InvalidRequest(f"a string of {size} bytes where {len(frame) - pos - 2} are left")
    try:
        return frame[pos + 2 : end].decode("utf-8"), end
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"a name that is not UTF-8: {error}") from error


def frame(key: int, *parts: bytes) -> bytes:
    """A whole request: size, key, body."""
    return HEADER.pack(2 + sum(map(len, parts)), key) + b"".join(parts)


def error_of(code: int, where: str, offset: int = -1) -> Kafka2011Error:
    """The error a broker's answer names."""
    kind = BY_CODE.get(code, UnknownError)
    if kind is OffsetOutOfRange:
        return OffsetOutOfRange(offset, where=where)
    if kind is UnknownError:
        hint = "its log says why (a damaged partition is offline: `kafka2011 topics describe --admin`)"
        return UnknownError(f"{where}: the broker answered error {code}; {hint}")
    if kind is WrongPartition:
        return WrongPartition(f"{where}: the broker has no such partition; `kafka2011 topics describe` lists them")
    return kind(f"{where}: the broker answered error {code} ({kind.__name__})")
