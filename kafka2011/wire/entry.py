"""Entries of a message set, one by one: reading one, walking them by their sizes, opening the wrappers among them.

Paper: §3.1 (the next offset is the current one plus the length of the message), §3.3 (CRC); the rules are
docs/protocol.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from isal.isal_zlib import crc32

from kafka2011.errors import InvalidMessage, InvalidMessageSize
from kafka2011.wire.budget import Budget
from kafka2011.wire.compression import decompress
from kafka2011.wire.message import LENGTH, MAGIC_0, MAGIC_1, codec_of


@dataclass(frozen=True, slots=True)
class Limits:
    """How far wrappers are opened, against compression bombs.

    ``max_inflated`` and ``max_messages`` hold for a whole set when the broker validates it, and for each outer entry
    when a consumer reads: whatever a broker accepted can be read. ``max_ratio`` is asked only above
    ``free_inflated`` bytes, since short repetitive logs compress very well.
    """

    max_inflated: int = 8 * 1024 * 1024
    max_ratio: int = 100
    free_inflated: int = 1024 * 1024
    max_depth: int = 2
    max_messages: int = 500_000


DEFAULT_LIMITS = Limits()


class Entry(NamedTuple):
    """One entry of a set as it stands there, wrapper or not."""

    size: int
    magic: int
    attributes: int
    payload: bytes


def read_entry(data: bytes | memoryview, pos: int) -> Entry | None:
    """Read one entry and check its CRC; None where the bytes end first.

    Raises InvalidMessageSize or InvalidMessage for anything that is not an entry (docs/protocol.md).
    """
    left = len(data) - pos - 4
    if left < 0:
        return None
    (n,) = LENGTH.unpack_from(data, pos)
    if n < 0 or (n > left and pos == 0):
        raise InvalidMessageSize(
            f"the entry at byte {pos} says {n} bytes and {left} are there; fetch more at a time, or the log is damaged"
        )
    if n > left:
        return None
    if n < 5 or (data[pos + 4] == 1 and n < 6):
        raise InvalidMessageSize(f"the entry at byte {pos} says {n} bytes, less than its own header")
    if data[pos + 4] == 1:
        _, magic, attributes, crc = MAGIC_1.unpack_from(data, pos)
        payload = bytes(data[pos + 10 : pos + 4 + n])
    else:
        _, magic, crc = MAGIC_0.unpack_from(data, pos)
        attributes, payload = 0, bytes(data[pos + 9 : pos + 4 + n])
    if magic > 1:
        raise InvalidMessage(f"the entry at byte {pos} has magic {magic}; known are 0 and 1")
    if crc32(payload) != crc:
        raise InvalidMessage(f"the entry at byte {pos} fails its CRC: {crc:08x} written, {crc32(payload):08x} found")
    return Entry(4 + n, magic, attributes, payload)


def valid_bytes(data: bytes) -> int:
    """Bytes up to the end of the last whole entry: how far a consumer's fetch offset moves (docs/protocol.md)."""
    pos, end = 0, len(data)
    while end - pos >= 4:
        (n,) = LENGTH.unpack_from(data, pos)
        if n < 0 or (n > end - pos - 4 and pos == 0):
            raise InvalidMessageSize(f"the entry at byte {pos} says {n} bytes and {end - pos - 4} are there")
        if n > end - pos - 4:
            break
        pos += 4 + n
    return pos


class Opener:
    """Open wrappers and account for what came out of them: in ``budget``, else in one of its own."""

    def __init__(self, limits: Limits, budget: Budget | None = None) -> None:
        self.limits = limits
        self.budget = Budget(limits.max_inflated, limits.max_messages) if budget is None else budget

    def open(self, entry: Entry, depth: int) -> bytes:
        """The set inside a wrapper."""
        if depth >= self.limits.max_depth:
            raise InvalidMessage(f"wrappers are nested deeper than {self.limits.max_depth}; send them flat")
        fair = max(self.limits.free_inflated, self.limits.max_ratio * len(entry.payload))
        room = min(self.limits.max_inflated, self.budget.inflated, fair)
        inner = decompress(codec_of(entry.attributes), entry.payload, room)
        self.budget.spend(len(inner))
        return inner
