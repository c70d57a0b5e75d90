"""Errors as codes of today's protocol. See docs/group-protocol.md."""

from __future__ import annotations

from kafka2011.errors import (
    IllegalTopicName,
    InvalidMessage,
    InvalidMessageSize,
    Kafka2011Error,
    LogError,
    MessageTooLarge,
    NotServing,
    OffsetOutOfRange,
    RequestTimedOut,
    TooFewInSync,
    TooManyTopics,
    WrongPartition,
)
from since2011.wire.batches import OldMessageFormat
from since2011.wire.compression import UnknownCompression
from since2011.wire.error_codes import ErrorCode


class Refused(Kafka2011Error):
    """A request, or a part of one, that is answered with ``error``."""

    def __init__(self, error: ErrorCode, sentence: str) -> None:
        self.error = error
        super().__init__(sentence)


_CODES: tuple[tuple[type[Kafka2011Error], ErrorCode], ...] = (
    (OffsetOutOfRange, ErrorCode.OFFSET_OUT_OF_RANGE),
    # Before InvalidMessage, which a client would send again: this one it cuts up, or gives up.
    (MessageTooLarge, ErrorCode.MESSAGE_TOO_LARGE),
    (InvalidMessage, ErrorCode.CORRUPT_MESSAGE),
    (InvalidMessageSize, ErrorCode.CORRUPT_MESSAGE),
    (OldMessageFormat, ErrorCode.INVALID_RECORD),
    (UnknownCompression, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    (WrongPartition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (IllegalTopicName, ErrorCode.INVALID_TOPIC),
    (TooManyTopics, ErrorCode.POLICY_VIOLATION),
    (TooFewInSync, ErrorCode.NOT_ENOUGH_REPLICAS),
    (NotServing, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (LogError, ErrorCode.KAFKA_STORAGE_ERROR),
    (RequestTimedOut, ErrorCode.REQUEST_TIMED_OUT),
)


def refusal(error: Kafka2011Error) -> tuple[ErrorCode, str]:
    """The code and the sentence a client is told."""
    if isinstance(error, Refused):
        return error.error, str(error)
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code, str(error)
    number = getattr(error, "error_code", None)
    if isinstance(number, int):
        # Errors of packages above this one say themselves what a client is told.
        return ErrorCode(number), str(error)
    return ErrorCode.UNKNOWN_SERVER_ERROR, str(error)
