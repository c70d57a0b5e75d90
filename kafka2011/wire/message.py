"""One message: a payload with a checksum, and its bytes in a message set.

Paper: §3.1 ("a message is defined to contain just a payload of bytes"), §3.3 (a CRC for each message).

One entry of a message set, big-endian (docs/protocol.md):

    field        magic 0   magic 1   width   meaning
    N            0         0         4       bytes that follow
    magic        4         4         1       0 or 1
    attributes   -         5         1       bits 0-1: codec; the others are written 0 and ignored
    crc          5         6         4       CRC-32 of the payload only
    payload      9         10        N-5 / N-6
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from isal.isal_zlib import crc32 as _isal_crc32

from kafka2011.errors import InvalidMessage

LENGTH = struct.Struct(">i")
MAGIC_0 = struct.Struct(">iBI")
MAGIC_1 = struct.Struct(">iBBI")
CODEC_MASK = 3
SMALLEST_ENTRY = 9
"""Bytes of an empty magic-0 message: no entry is shorter."""


def crc32(data: bytes) -> int:
    """The ordinary CRC-32 of zlib and gzip, by the fastest implementation at hand."""
    checksum: int = _isal_crc32(data)
    return checksum


class Codec(IntEnum):
    """How the payload of a wrapper message is compressed."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2


@dataclass(frozen=True, slots=True)
class Message:
    """A payload and its format. There is no key, no time and no offset inside (§3.1)."""

    payload: bytes
    magic: int = 1
    attributes: int = 0

    @property
    def codec(self) -> Codec:
        """The compression named by the attributes; magic 0 has none."""
        return codec_of(self.attributes) if self.magic else Codec.NONE

    @property
    def size(self) -> int:
        """Bytes in a set or a log; the next message's offset is this one's plus this (§3.1)."""
        return (MAGIC_1.size if self.magic else MAGIC_0.size) + len(self.payload)

    @property
    def crc(self) -> int:
        """The checksum written before the payload (§3.3)."""
        return crc32(self.payload)


def codec_of(attributes: int) -> Codec:
    """Read the codec bits; 3 names none."""
    try:
        return Codec(attributes & CODEC_MASK)
    except ValueError:
        raise InvalidMessage(
            f"message attributes {attributes:#04x} name codec 3; known are 0 (none), 1 (gzip), 2 (snappy)"
        ) from None


def encode_message(message: Message) -> bytes:
    """The message's bytes, length prefix included."""
    payload = message.payload
    if message.magic == 1:
        return MAGIC_1.pack(len(payload) + 6, 1, message.attributes & 0xFF, crc32(payload)) + payload
    if message.magic == 0:
        return MAGIC_0.pack(len(payload) + 5, 0, crc32(payload)) + payload
    raise InvalidMessage(f"message magic {message.magic} is not 0 or 1")
