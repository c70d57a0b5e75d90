"""Open the records of a compressed batch, within a limit.

Today's producers use gzip, snappy (raw, or in snappy-java's framing), lz4 frames and zstd. Whatever they use, no more
than ``limit`` bytes are ever inflated: what a batch may hold is bounded, how well it compresses is not.

See docs/modern-port.md (codec numbers).
"""

from __future__ import annotations

import cramjam

from kafka2011.errors import InvalidMessage, Kafka2011Error, SetTooLarge
from kafka2011.wire.compression import compress as close_wrapper
from kafka2011.wire.compression import decompress as open_wrapper
from kafka2011.wire.message import Codec

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)


class UnknownCompression(Kafka2011Error):
    """A codec number nobody has defined."""


def decompress(codec: int, data: bytes, limit: int) -> bytes:
    """Open ``data``; raise InvalidMessage if it is damaged, SetTooLarge if it holds more than ``limit`` bytes."""
    if codec == NONE:
        return data
    if codec in (GZIP, SNAPPY):
        return open_wrapper(Codec(codec), data, limit)
    if codec in (LZ4, ZSTD):
        return _inflate(codec, data, limit)
    raise UnknownCompression(f"compression codec {codec} is not known; use gzip, snappy, lz4 or zstd")


def _inflate(codec: int, data: bytes, limit: int) -> bytes:
    module = cramjam.lz4 if codec == LZ4 else cramjam.zstd
    name = "lz4" if codec == LZ4 else "zstd"
    # A few times the input is nearly always enough; the limit is only set aside for a batch that needs it.
    for size in sorted({min(limit, 16 * len(data) + 65_536), limit}):
        target = bytearray(size)
        try:
            written: int = module.decompress_into(data, target)
        except cramjam.DecompressionError as error:
            problem = str(error)
            continue
        return bytes(memoryview(target)[:written])
    if "write whole buffer" in problem or "too small" in problem:
        raise _too_large(name, limit)
    raise InvalidMessage(f"a {name} batch of {len(data)} bytes cannot be opened: {problem}")


def _too_large(name: str, limit: int) -> SetTooLarge:
    return SetTooLarge(f"a {name} batch inflates to more than the {limit} bytes allowed here; send smaller batches")


def compress(codec: int, data: bytes) -> bytes:
    """Close ``data`` as Kafka's own producers do: gzip, snappy in snappy-java's framing, lz4 frames, zstd."""
    if codec in (GZIP, SNAPPY):
        return close_wrapper(Codec(codec), data)
    if codec == LZ4:
        frame = cramjam.lz4.Compressor(block_linked=False)  # Kafka refuses a frame whose blocks need one another
        frame.compress(data)
        return bytes(frame.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=3))
    return data
