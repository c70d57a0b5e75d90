"""Lab 1, a model solution: messages as bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

SIZE = struct.Struct(">I")
LARGEST_SET = 1 << 20
PLAIN, GZIP = 0, 1


class Damaged(Exception):
    """The bytes at ``offset`` are not a message."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def encode(payload: bytes) -> bytes:
    """One message of magic 0: size, magic, CRC, payload."""
    return SIZE.pack(5 + len(payload)) + struct.pack(">BI", 0, zlib.crc32(payload)) + payload


def encode_set(payloads: list[bytes]) -> bytes:
    """A message set: messages end to end, nothing in between."""
    return b"".join(encode(payload) for payload in payloads)


def intact(data: bytes) -> int:
    """How many bytes from the front are whole, undamaged messages."""
    good = 0
    try:
        for _, end in walk(data):
            good = end
    except Damaged:
        pass
    return good


def decode_set(data: bytes, start: int = 0) -> list[tuple[bytes, int]]:
    """Each payload with the offset of the message after it."""
    found = []
    try:
        for payloads, end in walk(data):
            found += [(payload, start + end) for payload in payloads]
    except Damaged as error:
        raise Damaged(start + error.offset) from None
    return found


def walk(data: bytes) -> Iterator[tuple[list[bytes], int]]:
    """The payloads of one message (several, if it is a wrapper) and where it ends; stops at an unfinished one."""
    at = 0
    while at + 4 <= len(data):
        (size,) = SIZE.unpack_from(data, at)
        if size < 5:
            raise Damaged(at)
        end = at + 4 + size
        if end > len(data):
            return
        yield payloads_of(data[at + 4 : end], at), end
        at = end


def payloads_of(body: bytes, at: int) -> list[bytes]:
    """What the message at ``at`` holds, its size field left out."""
    magic, attributes = body[0], PLAIN
    head = 1
    if magic == 1 and len(body) >= 6:
        attributes, head = body[1], 2
    elif magic != 0:
        raise Damaged(at)
    crc, payload = body[head : head + 4], body[head + 4 :]
    if int.from_bytes(crc, "big") != zlib.crc32(payload):
        raise Damaged(at)
    if attributes == PLAIN:
        return [payload]
    if attributes != GZIP:
        raise Damaged(at)
    return opened(payload, at)


def opened(packed: bytes, at: int) -> list[bytes]:
    """The payloads of a compressed set, inflated no further than it may be."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        data = inflater.decompress(packed, LARGEST_SET + 1)
    except zlib.error:
        raise Damaged(at) from None
    if len(data) > LARGEST_SET or not inflater.eof or intact(data) != len(data):
        raise Damaged(at)
    return [payload for payload, _ in decode_set(data)]
