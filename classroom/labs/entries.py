"""Messages of magic 0, for the tests of labs that build on lab 1: made, and walked."""

from __future__ import annotations

import struct
import zlib

_HEAD = struct.Struct(">IBI")


def message(payload: bytes) -> bytes:
    """One message: size, magic, CRC, payload."""
    return _HEAD.pack(5 + len(payload), 0, zlib.crc32(payload)) + payload


def intact(data: bytes) -> int:
    """How many bytes from the front are whole, undamaged messages."""
    at = 0
    while at + _HEAD.size <= len(data):
        size, magic, crc = _HEAD.unpack_from(data, at)
        end = at + 4 + size
        if size < 5 or magic != 0 or end > len(data) or zlib.crc32(data[at + 9 : end]) != crc:
            break
        at = end
    return at
