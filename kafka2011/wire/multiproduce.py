"""MULTIPRODUCE, key 3: several PRODUCE bodies in one request. No answer; applied in order, not atomic.

    i16 count | count x PRODUCE body
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka2011.errors import InvalidRequest
from kafka2011.wire.fields import I16, frame
from kafka2011.wire.produce import ProduceRequest, read_produce

KEY = 3


@dataclass(frozen=True, slots=True)
class MultiProduceRequest:
    """Append to several partitions."""

    produces: tuple[ProduceRequest, ...]

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(KEY, I16.pack(len(self.produces)), *(one.body() for one in self.produces))


def read_multiproduce(data: bytes, pos: int) -> MultiProduceRequest:
    """Read the body at ``pos``."""
    (count,) = I16.unpack_from(data, pos)
    if count < 0:
        raise InvalidRequest(f"a multi-produce of {count} requests")
    pos += 2
    produces = []
    for _ in range(count):
        one, pos = read_produce(data, pos)
        produces.append(one)
    return MultiProduceRequest(tuple(produces))
