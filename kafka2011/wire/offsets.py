"""OFFSETS, key 4: which offsets were valid at or before a time.

    request   string topic | i32 partition | i64 time in ms (-1 latest, -2 earliest) | i32 max offsets
    answer    i32 size | i16 error | i32 count | count x i64, newest first

In 0.7 the error is always 0. Here it is -1, without offsets, for a partition whose damaged log is offline.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from kafka2011.errors import InvalidRequest
from kafka2011.wire.fields import HEADER, I16, I32, encode_string, error_of, frame, read_string

KEY = 4
LATEST = -1
EARLIEST = -2
_NUMBERS = struct.Struct(">iqi")


@dataclass(frozen=True, slots=True)
class OffsetsRequest:
    """Ask for at most ``max_offsets`` offsets at or before ``time_ms``."""

    topic: str
    partition: int
    time_ms: int = LATEST
    max_offsets: int = 1

    def encode(self) -> bytes:
        """The whole frame."""
        numbers = _NUMBERS.pack(self.partition, self.time_ms, self.max_offsets)
        return frame(KEY, encode_string(self.topic), numbers)


def read_offsets(data: bytes, pos: int) -> OffsetsRequest:
    """Read the body at ``pos``."""
    topic, pos = read_string(data, pos)
    partition, time_ms, max_offsets = _NUMBERS.unpack_from(data, pos)
    if max_offsets < 0:
        raise InvalidRequest(f"an offsets request for {max_offsets} offsets")
    return OffsetsRequest(topic, partition, time_ms, max_offsets)


def encode_offsets_response(offsets: Sequence[int], error: int = 0) -> bytes:
    """A whole answer."""
    numbers = struct.pack(f">i{len(offsets)}q", len(offsets), *offsets)
    return HEADER.pack(2 + len(numbers), error) + numbers


def decode_offsets_response(body: bytes, where: str) -> list[int]:
    """The offsets of an answer (given without its size); ``where`` is the partition that was asked about."""
    if len(body) < 2:
        raise InvalidRequest(f"an offsets answer of {len(body)} bytes")
    (code,) = I16.unpack_from(body)
    if code:
        raise error_of(code, where)
    count = I32.unpack_from(body, 2)[0] if len(body) >= 6 else -1
    if count < 0 or 6 + 8 * count > len(body):
        raise InvalidRequest(f"an offsets answer that promises {count} offsets in {len(body)} bytes")
    return list(struct.unpack_from(f">{count}q", body, 6))
