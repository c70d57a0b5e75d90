"""Variable-length integers: seven bits a byte, low group first, signed ones zig-zag (0, -1, 1 are 0, 1, 2)."""

from __future__ import annotations

from kafka2011.errors import InvalidMessage

_LONGEST = 10
"""Bytes of the longest varint: 64 bits, seven at a time."""


def put_varint(out: bytearray, value: int) -> None:
    """Append a signed number."""
    left = value << 1 if value >= 0 else (~value << 1) | 1
    while left > 0x7F:
        out.append(0x80 | (left & 0x7F))
        left >>= 7
    out.append(left)


def get_varint(data: bytes | memoryview, pos: int) -> tuple[int, int]:
    """A signed number and the position after it."""
    raw = shift = 0
    for at in range(pos, min(pos + _LONGEST, len(data))):
        byte = data[at]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at + 1
        shift += 7
    raise InvalidMessage(f"a varint at byte {pos} does not end")
