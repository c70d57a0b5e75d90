"""Compress and open the payload of a wrapper message, within limits.

Paper: §4 ("each producer can compress a set of messages"). Both formats are those of 0.7 (docs/protocol.md): gzip as
one RFC 1952 member, snappy in snappy-java's own framing (a raw block is accepted when reading).

A reader never inflates more than it was allowed to: gzip is stopped at the limit, a snappy block tells its size first.
"""

from __future__ import annotations

import struct

import cramjam
from isal import isal_zlib
from isal.igzip_lib import IsalError

from kafka2011.errors import InvalidMessage, SetTooLarge
from kafka2011.wire.message import Codec, crc32

_GZIP_HEADER = bytes.fromhex("1f8b0800000000000000")
_GZIP_LEVEL = 3
"""isal's highest: twenty times as fast as zlib's level 6, of which the JVM's is one, and a tenth larger."""
_GZIP_TRAILER = struct.Struct("<II")
_SNAPPY_HEADER = bytes.fromhex("82534e41505059000000000100000001")
_SNAPPY_MAGIC = _SNAPPY_HEADER[:8]
_SNAPPY_BLOCK = 32768
_LENGTH = struct.Struct(">i")


def compress(codec: Codec, data: bytes) -> bytes:
    """Compress into the formats of the 0.7 JVM producer."""
    if codec is Codec.GZIP:
        deflate = isal_zlib.compressobj(_GZIP_LEVEL, wbits=-15)
        body = deflate.compress(data) + deflate.flush()
        return _GZIP_HEADER + body + _GZIP_TRAILER.pack(crc32(data), len(data) & 0xFFFFFFFF)
    if codec is Codec.SNAPPY:
        parts = [_SNAPPY_HEADER]
        for start in range(0, len(data), _SNAPPY_BLOCK):
            block = bytes(cramjam.snappy.compress_raw(data[start : start + _SNAPPY_BLOCK]))
            parts += [_LENGTH.pack(len(block)), block]
        return b"".join(parts)
    return data


def decompress(codec: Codec, data: bytes, limit: int) -> bytes:
    """Open ``data``; raise InvalidMessage if it is damaged, SetTooLarge if it would be more than ``limit`` bytes."""
    if codec is Codec.GZIP:
        return _gunzip(data, limit)
    if codec is Codec.SNAPPY:
        return _unsnap(data, limit)
    return data


def _gunzip(data: bytes, limit: int) -> bytes:
    inflate = isal_zlib.decompressobj(wbits=31)
    try:
        result: bytes = inflate.decompress(data, limit + 1)
    except IsalError as error:  # type: ignore[misc]  # its stub declares the class as an instance
        raise InvalidMessage(f"a gzip wrapper of {len(data)} bytes cannot be opened: {error}") from error
    if len(result) > limit:
        raise _too_large("gzip", len(data), limit)
    if not inflate.eof:
        raise InvalidMessage(f"a gzip wrapper of {len(data)} bytes ends before its stream does")
    if inflate.unused_data:
        raise InvalidMessage(f"a gzip wrapper carries {len(inflate.unused_data)} bytes after its stream")
    return result


def _unsnap(data: bytes, limit: int) -> bytes:
    if not (len(data) >= len(_SNAPPY_HEADER) and data.startswith(_SNAPPY_MAGIC)):
        return _unsnap_block(data, limit)
    blocks = []
    room, pos = limit, len(_SNAPPY_HEADER)
    while pos < len(data):
        size = _LENGTH.unpack_from(data, pos)[0] if pos + 4 <= len(data) else -1
        if size < 0 or pos + 4 + size > len(data):
            raise InvalidMessage(f"a snappy wrapper of {len(data)} bytes has a block at byte {pos} that overruns it")
        block = _unsnap_block(data[pos + 4 : pos + 4 + size], room)
        blocks.append(block)
        room -= len(block)
        pos += 4 + size
    return b"".join(blocks)


def _unsnap_block(block: bytes, limit: int) -> bytes:
    try:
        if cramjam.snappy.decompress_raw_len(block) > limit:
            raise _too_large("snappy", len(block), limit)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise InvalidMessage(f"a snappy block of {len(block)} bytes cannot be opened: {error}") from error


def _too_large(codec: str, size: int, limit: int) -> SetTooLarge:
    return SetTooLarge(
        f"a {codec} wrapper of {size} bytes inflates to more than the {limit} bytes allowed here; send smaller sets"
    )
