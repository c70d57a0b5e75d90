"""Write the records of a producer's batch: what ``records.put_record`` does one by one, for a whole batch and quickly.

Lengths and deltas below 8,192 are looked up, ready as bytes; everything is joined once.
"""

from __future__ import annotations

from collections.abc import Sequence

from since2011.wire.varint import put_varint

Headers = Sequence[tuple[str, bytes | None]]
Row = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp, key, value, headers."""


def _varint(value: int) -> bytes:
    out = bytearray()
    put_varint(out, value)
    return bytes(out)


_READY = 8192
_VARINT = [_varint(value) for value in range(_READY)]
_NULL, _NO_HEADERS, _NO_ATTRIBUTES = _varint(-1), _varint(0), b"\0"


def encode_body(rows: Sequence[Row]) -> tuple[bytes, int]:
    """The records of a batch whose first offset is 0 and whose base timestamp is the first row's; the latest time."""
    ready, limit = _VARINT, _READY
    first = latest = rows[0][0]
    parts: list[bytes] = []
    for offset, (timestamp, key, value, headers) in enumerate(rows):
        latest = timestamp if timestamp > latest else latest
        delta = timestamp - first
        when = ready[delta] if 0 <= delta < limit else _varint(delta)
        number = ready[offset] if offset < limit else _varint(offset)
        if key is None:
            key, key_size = b"", _NULL
        else:
            key_size = ready[len(key)] if len(key) < limit else _varint(len(key))
        if value is None:
            value, value_size = b"", _NULL
        else:
            value_size = ready[len(value)] if len(value) < limit else _varint(len(value))
        tail = _headers(headers) if headers else _NO_HEADERS
        size = 1 + len(when) + len(number) + len(key_size) + len(key) + len(value_size) + len(value) + len(tail)
        parts += (
            ready[size] if size < limit else _varint(size),
            _NO_ATTRIBUTES, when, number, key_size, key, value_size, value, tail,
        )  # fmt: skip
    return b"".join(parts), latest


def _headers(headers: Headers) -> bytes:
    out = bytearray()
    put_varint(out, len(headers))
    for name, content in headers:
        data = name.encode()
        put_varint(out, len(data))
        out += data
        put_varint(out, -1 if content is None else len(content))
        out += content or b""
    return bytes(out)
