"""FETCH, key 1: a pull request, an offset and the bytes acceptable.

Paper: §3.1 ("each pull request contains the offset of the message from which the consumption begins and an
acceptable number of bytes to fetch").

    request   string topic | i32 partition | i64 offset | i32 max size
    answer    i32 size | i16 error | message set (cut anywhere; nothing on an error)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeVar

from kafka2011.errors import InvalidRequest
from kafka2011.wire.fields import HEADER, I16, encode_string, error_of, frame, read_string

KEY = 1
_NUMBERS = struct.Struct(">iqi")
Bytes = TypeVar("Bytes", bytes, memoryview)
"""An answer and what is cut out of it: a view gives views, without a copy."""


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Read at most ``max_size`` bytes of a partition from ``offset`` on."""

    topic: str
    partition: int
    offset: int
    max_size: int

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(KEY, self.body())

    def body(self) -> bytes:
        """The fields, as a multi-fetch repeats them."""
        return encode_string(self.topic) + _NUMBERS.pack(self.partition, self.offset, self.max_size)


def read_fetch(data: bytes, pos: int) -> tuple[FetchRequest, int]:
    """Read one FETCH body at ``pos``."""
    topic, pos = read_string(data, pos)
    partition, offset, max_size = _NUMBERS.unpack_from(data, pos)
    return FetchRequest(topic, partition, offset, max_size), pos + _NUMBERS.size


def encode_fetch_header(size: int, error: int = 0) -> bytes:
    """What precedes ``size`` bytes of a segment file in an answer (also inside a multi-fetch answer)."""
    return HEADER.pack(2 + size, error)


def encode_fetch_response(data: bytes = b"", error: int = 0) -> bytes:
    """A whole answer."""
    return encode_fetch_header(len(data), error) + data


def decode_fetch_response(body: Bytes, request: FetchRequest) -> Bytes:
    """The message-set bytes of an answer (given without its size); raises what the broker answered."""
    if len(body) < 2:
        raise InvalidRequest(f"a fetch answer of {len(body)} bytes")
    (code,) = I16.unpack_from(body)
    if code:
        raise error_of(code, f"{request.topic}-{request.partition}", request.offset)
    return body[2:]
