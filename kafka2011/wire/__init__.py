"""Bytes to values and back: messages, message sets, frames, and the five requests of Kafka 0.7.

Paper: §3, §3.1. Pure: nothing here opens a file or a socket, and any bytes give a value or a named error.
"""

from __future__ import annotations

import struct

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


def parse_request(data: bytes) -> Request:
    """Read a request frame: key and body, without the size. Bytes after the body are ignored (docs/protocol.md)."""
    try:
        (key,) = I16.unpack_from(data)
        if key == produce.KEY:
            return produce.read_produce(data, 2)[0]
        if key == fetch.KEY:
            return fetch.read_fetch(data, 2)[0]
        if key == multifetch.KEY:
            return multifetch.read_multifetch(data, 2)
        if key == multiproduce.KEY:
            return multiproduce.read_multiproduce(data, 2)
        if key == offsets.KEY:
            return offsets.read_offsets(data, 2)
        if key == acked_produce.KEY:
            return acked_produce.read_acked_produce(data, 2)
    except struct.error:
        raise InvalidRequest(f"a request of {len(data)} bytes that ends before its fields do") from None
    raise InvalidRequest(f"request key {key}; known are 0 to 4, and {acked_produce.KEY} (acknowledged produce)")


__all__ = [
    "DEFAULT_LIMITS",
    "EARLIEST",
    "LATEST",
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
