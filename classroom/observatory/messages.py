"""A message for the page: its bytes with their meaning, its payload as text.

Paper: §3.1, "To compute the id of the next message, we have to add the length of the current message to its id".
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

from kafka2011.wire.message import crc32

Decoder = Callable[[bytes], tuple[Any | None, str]]
"""A payload's meaning and the name of its format; ``None, ""`` if it is just bytes."""

_PREVIEW = 4_096
_DEEPEST = 64


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
    decoded, form = shown(payload, decode)
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


def meaning(payload: bytes, decode: Decoder) -> str:
    """The meaning of a payload as text, to be searched; empty if it is just bytes."""
    decoded, _ = shown(payload, decode)
    return "" if decoded is None else json.dumps(decoded, ensure_ascii=False)


def shown(payload: bytes, decode: Decoder) -> tuple[Any | None, str]:
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
