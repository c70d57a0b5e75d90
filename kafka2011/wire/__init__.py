"""Bytes to values and back: messages, message sets, frames, and the five requests of Kafka 0.7.

Paper: §3, §3.1. Pure: nothing here opens a file or a socket, and any bytes give a value or a named error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kafka2011.errors import InvalidRequest
from kafka2011.wire import acked_produce, fetch, multifetch, multiproduce, offsets, produce
from kafka2011.wire.acked_produce import AckedProduceRequest, AckLevel
from kafka2011.wire.budget import Budget
from kafka2011.wire.entry import DEFAULT_LIMITS, Limits, valid_bytes
from kafka2011.wire.fetch import FetchRequest
from kafka2011.wire.fields import I16
from kafka2011.wire.frame import FrameSplitter
from kafka2011.wire.message import Codec, Message, crc32, encode_message
from kafka2011.wire.message_set import MessageSet, SetSummary, encode_set, validate_set
from kafka2011.wire.multifetch import MultiFetchRequest
from kafka2011.wire.multiproduce import MultiProduceRequest
from kafka2011.wire.offsets import EARLIEST, LATEST, OffsetsRequest
from kafka2011.wire.produce import ProduceRequest
from kafka2011.wire.reading import MessageAndOffset, ReadSet, decode_set, read_set, readable_bytes

Request = ProduceRequest | FetchRequest | MultiFetchRequest | MultiProduceRequest | OffsetsRequest | AckedProduceRequest

READERS: dict[int, Callable[[bytes, int], Any]] = {
    produce.KEY: lambda data, pos: produce.read_produce(data, pos)[0],
    fetch.KEY: lambda data, pos: fetch.read_fetch(data, pos)[0],
    multifetch.KEY: multifetch.read_multifetch,
    multiproduce.KEY: multiproduce.read_multiproduce,
    offsets.KEY: offsets.read_offsets,
    acked_produce.KEY: acked_produce.read_acked_produce,
}
"""What reads the body of each request, by its key."""


def parse_request(data: bytes, readers: dict[int, Callable[[bytes, int], Any]] = READERS) -> Any:
    """Read a request frame: key and body, without the size. Bytes after the body are ignored (docs/protocol.md).

    The result is a ``Request``, or what a reader that was added returns.
    """
    try:
        (key,) = I16.unpack_from(data)
        reader = readers.get(key)
        if reader is not None:
            return reader(data, 2)
    except struct.error:
        raise InvalidRequest(f"a request of {len(data)} bytes that ends before its fields do") from None
    raise InvalidRequest(f"request key {key}; known are 0 to 4, and {acked_produce.KEY} (acknowledged produce)")


__all__ = [
    "DEFAULT_LIMITS",
    "EARLIEST",
    "LATEST",
    "READERS",
    "AckLevel",
    "AckedProduceRequest",
    "Budget",
    "Codec",
    "FetchRequest",
    "FrameSplitter",
    "Limits",
    "Message",
    "MessageAndOffset",
    "MessageSet",
    "MultiFetchRequest",
    "MultiProduceRequest",
    "OffsetsRequest",
    "ProduceRequest",
    "ReadSet",
    "Request",
    "SetSummary",
    "crc32",
    "decode_set",
    "encode_message",
    "encode_set",
    "parse_request",
    "read_set",
    "readable_bytes",
    "valid_bytes",
    "validate_set",
]
