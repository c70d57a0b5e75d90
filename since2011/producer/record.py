"""What an application sends, as interceptors see it, and what is kept of it until it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from since2011.producer.errors import RecordRefused
from since2011.wire.records import Header, Row

__all__ = ["OVERHEAD", "Header", "ProducerRecord", "Row", "as_bytes", "size_with_headers", "upper_size"]

OVERHEAD = 21
"""Bytes of a record beside key, value and headers, at most: five lengths, a time, an offset, attributes."""


class ProducerRecord(NamedTuple):
    """A record before it is serialized."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Sequence[Header] = ()


def upper_size(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
    """Bytes a record takes in a batch, at most."""
    size = OVERHEAD + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        size += 10 + len(name.encode()) + (len(content) if content else 0)
    return size


def as_bytes(key: Any, value: Any) -> tuple[bytes | None, bytes | None]:
    """Key and value as bytes; raises RecordRefused for what is none."""
    for name, one in (("key", key), ("value", value)):
        if one is not None and not isinstance(one, bytes | bytearray | memoryview):
            raise RecordRefused(
                f"the {name} is {type(one).__name__}; only bytes are sent: encode it, or set {name}.serializer"
            )
    return None if key is None else bytes(key), None if value is None else bytes(value)


def size_with_headers(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
    """``upper_size``; raises RecordRefused for headers that are none."""
    try:
        if all(isinstance(content, bytes | None) for _, content in headers):
            return upper_size(key, value, headers)
    except (TypeError, ValueError, AttributeError):
        pass
    raise RecordRefused(f"headers are pairs of text and bytes (or None), not {headers!r}")
