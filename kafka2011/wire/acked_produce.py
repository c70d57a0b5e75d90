"""ACKED PRODUCE, key 100: a produce that is answered. **Not in 2011**: an extension, off unless a producer asks.

Paper: §3.2/§4 leave it open ("no acknowledgement from the broker"); whether a message was lost cannot be judged
without one. See docs/paper-vs-code.md.

    request   i16 level (1 = appended, 2 = flushed, 3 = held by all in sync) | PRODUCE body
    answer    i32 size | i16 error | i64 first offset | i64 next offset       (both -1 on an error)

Level 3 is for brokers with standbys (docs/since-2011.md). Errors are 0.7's codes and 100 to 107 below. After 105 and
106 the set was appended, and it is not known whether it is safe; after every other error nothing was appended.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from kafka2011.errors import (
    BY_CODE,
    FlushFailed,
    IllegalTopicName,
    InvalidRequest,
    Kafka2011Error,
    LogCorrupt,
    LogFailed,
    LogFull,
    MessageTooLarge,
    RequestTimedOut,
    TooFewInSync,
)
from kafka2011.wire.fields import I16, error_of, frame
from kafka2011.wire.produce import ProduceRequest, read_produce

KEY = 100
_ANSWER = struct.Struct(">ihqq")
_ERRORS: dict[int, type[Kafka2011Error]] = BY_CODE | {
    100: LogFull,
    101: LogFailed,
    102: LogCorrupt,
    103: MessageTooLarge,
    104: IllegalTopicName,
    105: FlushFailed,
    106: RequestTimedOut,
    107: TooFewInSync,
}
_CODES = {kind: code for code, kind in _ERRORS.items()}


class AckLevel(IntEnum):
    """When the answer is sent."""

    APPENDED = 1
    FLUSHED = 2
    ALL = 3


@dataclass(frozen=True, slots=True)
class AckedProduceRequest:
    """A produce, and when to answer it."""

    level: AckLevel
    produce: ProduceRequest

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(KEY, I16.pack(self.level), self.produce.body())


def read_acked_produce(data: bytes, pos: int) -> AckedProduceRequest:
    """Read the body at ``pos``."""
    (level,) = I16.unpack_from(data, pos)
    if level not in (AckLevel.APPENDED, AckLevel.FLUSHED, AckLevel.ALL):
        raise InvalidRequest(f"acknowledgement level {level} is not 1 (appended), 2 (flushed) or 3 (all)")
    produce, _ = read_produce(data, pos + 2)
    return AckedProduceRequest(AckLevel(level), produce)


def encode_acked_response(first: int, end: int) -> bytes:
    """The set lies at ``first`` … ``end``."""
    return _ANSWER.pack(18, 0, first, end)


def encode_acked_error(error: Kafka2011Error) -> bytes:
    """It is not acknowledged; the code says why (-1: something unforeseen)."""
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), -1)
    return _ANSWER.pack(18, code, -1, -1)


def decode_acked_response(body: bytes, where: str = "produce") -> tuple[int, int]:
    """First and next offset of an answer (given without its size); raises what the broker answered."""
    if len(body) < 18:
        raise InvalidRequest(f"an acknowledgement of {len(body)} bytes; 18 are due")
    code, first, end = struct.unpack_from(">hqq", body)
    if code in _ERRORS and code not in BY_CODE:
        kind = _ERRORS[code]
        fate = "nothing was appended" if kind.definite else "it was appended, and may be on disk or not"
        raise kind(f"{where}: the broker answered {kind.__name__} (code {code}); {fate}")
    if code:
        raise error_of(code, where)
    return first, end
