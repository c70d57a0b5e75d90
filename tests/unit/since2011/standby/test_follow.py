"""The followers' request and its answer as bytes (docs/protocol.md)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka2011.errors import InvalidRequest, Kafka2011Error
from kafka2011.types import TopicPartition
from kafka2011.wire import READERS, parse_request
from since2011.standby.follow import (
    KEY,
    NOT_PARTING,
    FollowRequest,
    Part,
    Position,
    encode_head,
    read_answer,
    read_follow,
)

WHERE = TopicPartition("clicks", 3)
REQUEST = FollowRequest("b", "disk", 7, 500, 1000, (Position(WHERE, 5, 100, 90, 0), Position(WHERE, -1, 0, 0, 0)))


def test_a_request_is_read_as_it_was_written() -> None:
    """Key 101: member, disk, epoch, wait, size, and a position for each partition."""
    readers = READERS | {KEY: read_follow}
    assert parse_request(REQUEST.encode()[4:], readers) == REQUEST
    with pytest.raises(InvalidRequest):
        parse_request(REQUEST.encode()[4:-1], readers)


def test_an_answer_is_read_as_it_was_written() -> None:
    """Parts one behind the other, each with its bytes; the size in front counts them all."""
    parts = [Part(WHERE, NOT_PARTING, 90, 0, 0, 7, 100, 4), Part(WHERE, (5, 80), 90, 0, 0, 7, 100, 0)]
    answer = encode_head(7, parts) + parts[0].head() + b"abcd" + parts[1].head()
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    epoch, found = read_answer(memoryview(answer)[4:])
    assert epoch == 7
    assert [(part, bytes(data)) for part, data in found] == [(parts[0], b"abcd"), (parts[1], b"")]
    with pytest.raises(InvalidRequest):
        read_answer(memoryview(encode_head(7, parts[:1]) + parts[0].head() + b"abc")[4:])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_a_named_error(data: bytes) -> None:
    """Whatever a stranger sends to a member, nothing but a named error comes of it (docs/reliability.md)."""
    try:
        parse_request(b"\x00\x65" + data, {KEY: read_follow})
    except Kafka2011Error:
        pass
