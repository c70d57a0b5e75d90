"""Bytes that are no message: what is wrong with them, and where the next good message begins.

Paper: §3.3 (a CRC per message, so that damage on a broker's disk is found and costs that message only).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from isal.isal_zlib import crc32

MAX_ENTRY = 64 << 20
"""No entry is longer: a length beyond it is damage, whatever follows."""

_MOST_CHECKED = 64
"""How often, on average, a byte may be checked in a search. Honest bytes need about one check; of a payload made of
lengths every byte would be checked once for each of them."""
_PRICE = 1024
"""Looking at a place costs as much as checking so many bytes."""

_length = struct.Struct(">i").unpack_from


def is_whole(data: bytes, position: int) -> bool:
    """Tell whether the entry's own length keeps it inside the chunk."""
    left = len(data) - position - 4
    return left >= 0 and 5 <= _length(data, position)[0] <= left


def good_entry_end(data: bytes, position: int) -> int | None:
    """Where the entry at ``position`` ends, if it is whole and its CRC is right."""
    if len(data) - position < 9:
        return None
    (size,) = _length(data, position)
    end = position + 4 + size
    magic = data[position + 4]
    if size < 5 or end > len(data) or magic > 1 or size < 5 + magic:
        return None
    return int(end) if _crc_is_right(data, position, end) else None


def _crc_is_right(data: bytes, position: int, end: int) -> bool:
    """Tell whether the entry's CRC is right if it ends there, whatever its length says."""
    head = position + 9 + data[position + 4]
    return head <= end and crc32(memoryview(data)[head:end]) == int.from_bytes(data[head - 4 : head], "big")


def damage_at(data: bytes, position: int) -> tuple[str, int]:
    """Say what is wrong at ``position`` and where to go on."""
    lost = "no message begins here: damaged length or bytes"
    if not is_whole(data, position):
        return lost, next(good_starts(data, position + 1), len(data))
    end = position + 4 + _length(data, position)[0]
    magic = data[position + 4]
    if end < len(data) and good_entry_end(data, end) is None:
        return lost, next(good_starts(data, position + 1), len(data))
    # The entry ends where another one begins, so its length may be right. If the CRC is right for another end, at which
    # a good entry begins, it is the length that is wrong, and that entry is not part of the damage.
    if magic <= 1:
        for start in good_starts(data, position + 9):
            if start >= end:
                break
            if _crc_is_right(data, position, start):
                return "damaged length", start
    return ("wrong CRC" if magic <= 1 else f"unknown magic {magic}"), end


def good_starts(data: bytes, position: int = 0) -> Iterator[int]:
    """Positions from which an entry and the one after it are good, or it ends the data. Used to split and to recover.

    Payloads that themselves contain message sets can fool this; the tiling check of the load catches every such split.
    The search gives up where it would cost too much.
    """
    raw = np.frombuffer(data, dtype=np.uint8)
    left = _MOST_CHECKED * max(len(data), 1 << 20)
    while position + 9 <= len(data):
        window = raw[position : position + (1 << 20) + 4]
        magic = window[4:] <= 1
        # No entry is longer than MAX_ENTRY, so its first length byte is small; this leaves few places to try.
        candidates = np.flatnonzero(magic & (window[:-4] <= (MAX_ENTRY >> 24)))
        for candidate in candidates:
            start = position + int(candidate)
            left -= _PRICE + (_length(data, start)[0] if is_whole(data, start) else 0)
            if left < 0:
                return
            end = good_entry_end(data, start)
            if end is not None and (end == len(data) or good_entry_end(data, end) is not None):
                yield start
        position += len(window) - 4
