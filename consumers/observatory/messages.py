"""Messages of a partition for the page: where each begins, its bytes with their meaning, its payload as text.

Paper: §3.1, "To compute the id of the next message, we have to add the length of the current message to its id".
"""

from __future__ import annotations

import json
import struct
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.types import BrokerPartition
from kafka2011.wire import EARLIEST, LATEST, valid_bytes
from kafka2011.wire.message import crc32

Decoder = Callable[[bytes], tuple[Any | None, str]]
"""A payload's meaning and the name of its format; ``None, ""`` if it is just bytes."""

SHOWN = 50
_PREVIEW = 4_096
_DEEPEST = 64


class BadQuestion(Kafka2011Error):
    """The page asked for something that is not there."""


def read_messages(
    connection: BrokerConnection, topic: str, partition: BrokerPartition, start: str, decode: Decoder
) -> dict[str, Any]:
    """Up to fifty messages from ``start``: begin, end, an offset, ~offset (the message that holds it), -N or @time."""
    offset = _find(connection, topic, partition.partition, start)
    data = connection.fetch(topic, partition.partition, offset, 300 * 1024)
    return {"from": offset, "messages": [anatomy(*entry, decode) for entry in _entries(data, offset)][:SHOWN]}


def anatomy(offset: int, entry: bytes, decode: Decoder) -> dict[str, Any]:
    """One entry of a set, taken apart: each field with its bytes and its meaning."""
    length, magic = struct.unpack_from(">ib", entry)
    header = 4 + (5 if magic == 0 else 6)
    payload = entry[header:]
    (crc,) = struct.unpack_from(">I", entry, header - 4)
    bad = None if crc == crc32(payload) else f"the CRC does not match: {crc:08x} written, {crc32(payload):08x} found"
    good = "matches the payload" if bad is None else f"does NOT match the payload, whose CRC is {crc32(payload):08x}"
    parts = [["length", entry[:4].hex(), f"{length} bytes follow"], ["magic", entry[4:5].hex(), f"format {magic}"]]
    if magic == 1:
        codec = {0: "not compressed", 1: "gzip", 2: "snappy"}.get(entry[5] & 3, "unknown codec")
        parts.append(["attributes", entry[5:6].hex(), codec])
    parts.append(["crc", entry[header - 4 : header].hex(), good])
    parts.append(["payload", payload[:_PREVIEW].hex(), f"{len(payload)} bytes of the application's own"])
    decoded, form = _shown(payload, decode)
    return {
        "offset": offset,
        "next_offset": offset + len(entry),
        "size": len(entry),
        "bad": bad,
        "parts": parts,
        "decoded": decoded,
        "format": form,
        "text": (json.dumps(decoded) if decoded is not None else payload[:200].decode("utf-8", "replace"))[:200],
    }


def _shown(payload: bytes, decode: Decoder) -> tuple[Any | None, str]:
    """The meaning of a payload, if the page can be given it: what no browser can read is shown as bytes."""
    try:
        decoded, form = decode(payload)
        # What the page gets must be JSON: no NaN, no half letters.
        json.dumps(decoded, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError):
        return None, ""
    return (decoded, form) if _depth(decoded) <= _DEEPEST else (None, f"{form}, nested too deep to be shown")


def _depth(value: Any) -> int:
    """How many lists and objects are inside each other, counted level by level."""
    depth, level = 0, [value]
    while level:
        inner = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, (dict, list))]
        level = [value for part in inner for value in part]
        depth += bool(inner)
    return depth


def json_or_nothing(payload: bytes) -> tuple[Any | None, str]:
    """Decode a payload that happens to be JSON."""
    try:
        return json.loads(payload), "JSON"
    except (ValueError, RecursionError):
        return None, ""


def _entries(data: bytes, offset: int) -> list[tuple[int, bytes]]:
    found, place, end = [], 0, valid_bytes(data)
    while place < end:
        size = 4 + int(struct.unpack_from(">i", data, place)[0])
        found.append((offset + place, data[place : place + size]))
        place += size
    return found


def _find(connection: BrokerConnection, topic: str, partition: int, start: str) -> int:
    first = connection.offsets(topic, partition, EARLIEST)[0]
    last = connection.offsets(topic, partition, LATEST)[0]
    if start in ("", "begin"):
        return first
    if start == "end":
        return last
    if start.startswith("-") and start[1:].isdigit():
        return _last_messages(connection, topic, partition, first, last, min(int(start[1:]), SHOWN))
    if start.startswith("@"):
        try:
            when = int(datetime.fromisoformat(start[1:]).timestamp() * 1000)
        except ValueError as error:
            raise BadQuestion(f"{start!r} is not a time; write @2026-01-31T12:00") from error
        found = connection.offsets(topic, partition, when)
        return found[0] if found else first
    if start.startswith("~") and start[1:].isdigit():
        return _holding(connection, topic, partition, first, last, int(start[1:]))
    if start.isdigit():
        return int(start)
    raise BadQuestion(f"{start!r} is not begin, end, an offset, ~offset, -N or @time")


def _walk(connection: BrokerConnection, topic: str, partition: int, start: int, last: int) -> Iterator[int]:
    """The offsets of the messages from ``start`` on: each is the one before plus its length."""
    place = start
    while place < last:
        entries = _entries(connection.fetch(topic, partition, place, 1024 * 1024), place)
        if not entries:
            return
        yield from (offset for offset, _ in entries)
        place = entries[-1][0] + len(entries[-1][1])


def _holding(connection: BrokerConnection, topic: str, partition: int, first: int, last: int, wanted: int) -> int:
    """The message that byte ``wanted`` of the log belongs to: walk there from the start of its file."""
    starts = [start for start in connection.offsets(topic, partition, LATEST, 1000) if start <= wanted]
    found = max(starts, default=first)
    for offset in _walk(connection, topic, partition, found, last):
        if offset > wanted:
            break
        found = offset
    return found


def _last_messages(connection: BrokerConnection, topic: str, partition: int, first: int, last: int, wanted: int) -> int:
    """Where the last ``wanted`` messages begin: walk from a segment start, since offsets cannot be counted back."""
    starts = [start for start in connection.offsets(topic, partition, LATEST, 1000) if start < last] or [first]
    for start in starts:
        offsets = deque(_walk(connection, topic, partition, start, last), maxlen=wanted)
        if len(offsets) >= wanted or start == starts[-1]:
            return offsets[0] if offsets else start
    return first
