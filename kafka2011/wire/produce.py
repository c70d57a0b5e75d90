"""PRODUCE, key 0: publish a message set. There is no answer, ever.

Paper: §3 ("the producer can send a set of messages in a single publish request"), §5.

    string topic | i32 partition (-1: the broker picks) | i32 set size | message set
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kafka2011.errors import InvalidRequest
from kafka2011.wire.fields import encode_string, frame, read_string

KEY = 0
_NUMBERS = struct.Struct(">ii")


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """Append ``data``, a message set, to a partition."""

    topic: str
    partition: int
    data: bytes

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(KEY, self.body())

    def body(self) -> bytes:
        """The fields, as a multi-produce repeats them."""
        return encode_string(self.topic) + _NUMBERS.pack(self.partition, len(self.data)) + self.data


def read_produce(data: bytes, pos: int) -> tuple[ProduceRequest, int]:
    """Read one PRODUCE body at ``pos``."""
    topic, pos = read_string(data, pos)
    partition, size = _NUMBERS.unpack_from(data, pos)
    start = pos + _NUMBERS.size
    if size < 0 or start + size > len(data):
        raise InvalidRequest(f"a message set of {size} bytes where {len(data) - start} are left")
    return ProduceRequest(topic, partition, data[start : start + size]), start + size
