"""Frames and requests that are wrong, and the acknowledged produce (docs/protocol.md; docs/reliability.md, N6, N7)."""

from __future__ import annotations

import struct

import pytest

from kafka2011.errors import (
    FlushFailed,
    InvalidRequest,
    Kafka2011Error,
    LogFailed,
    LogFull,
    MessageTooLarge,
    OffsetOutOfRange,
    RequestTimedOut,
    UnknownError,
    WrongPartition,
)
from kafka2011.wire import (
    AckedProduceRequest,
    AckLevel,
    FetchRequest,
    FrameSplitter,
    MultiFetchRequest,
    OffsetsRequest,
    ProduceRequest,
    parse_request,
)
from kafka2011.wire.acked_produce import decode_acked_response, encode_acked_error, encode_acked_response
from kafka2011.wire.fetch import decode_fetch_response
from kafka2011.wire.multifetch import decode_multifetch_response
from kafka2011.wire.offsets import decode_offsets_response


@pytest.mark.parametrize("key", [-1, 5, 99, 101, 32767, -32768])
def test_unknown_keys(key: int) -> None:
    """A request key that does not exist is refused (docs/protocol.md)."""
    with pytest.raises(InvalidRequest, match="key"):
        parse_request(struct.pack(">h", key) + bytes(100))


@pytest.mark.parametrize(
    "request_",
    [
        ProduceRequest("test", 0, b"12345"),
        FetchRequest("test", 0, 0, 100),
        MultiFetchRequest((FetchRequest("a", 0, 0, 1), FetchRequest("b", 0, 0, 1))),
        OffsetsRequest("test", 0),
        AckedProduceRequest(AckLevel.FLUSHED, ProduceRequest("test", 0, b"12345")),
    ],
)
def test_every_cut_is_refused(request_: ProduceRequest) -> None:
    """A request that ends before its fields do is refused wherever it is cut (docs/reliability.md)."""
    body = request_.encode()[4:]
    for cut in range(len(body)):
        with pytest.raises(InvalidRequest):
            parse_request(body[:cut])


@pytest.mark.parametrize(
    "body",
    [
        struct.pack(">hh", 0, -1) + bytes(20),
        struct.pack(">hh", 1, 32767) + bytes(20),
        struct.pack(">hh1sii", 0, 1, b"t", 0, -1),
        struct.pack(">hh1sii", 0, 1, b"t", 0, 2**31 - 1),
        struct.pack(">hh", 2, -1),
        struct.pack(">hh", 3, -1),
        struct.pack(">hh", 2, 32767) + bytes(100),
        struct.pack(">hh1siqi", 4, 1, b"t", 0, -1, -1),
        struct.pack(">hh2siqi", 1, 2, b"\xff\xfe", 0, 0, 1),
        struct.pack(">hhh1sii", 100, 4, 1, b"t", 0, 0),
    ],
    ids=[
        "null topic", "long topic", "negative set", "huge set", "negative multifetch", "negative multiproduce",
        "promised fetches", "negative offsets", "not utf-8", "ack level 4",
    ],
)  # fmt: skip
def test_impossible_fields(body: bytes) -> None:
    """Lengths and counts that cannot be are refused (docs/protocol.md, docs/reliability.md)."""
    with pytest.raises(InvalidRequest):
        parse_request(body)


def test_extreme_numbers_are_values() -> None:
    """Extreme partitions and offsets are read as they are; the broker judges them (docs/reliability.md)."""
    for partition, offset, size in ((-1, -1, -1), (2**31 - 1, 2**63 - 1, 2**31 - 1), (-(2**31), -(2**63), 0)):
        request = FetchRequest("", partition, offset, size)
        assert parse_request(request.encode()[4:]) == request


def test_frames_arrive_in_any_pieces() -> None:
    """However a stream is cut up, the frames are the same (docs/protocol.md)."""
    frames = [b"ab", b"cde" * 50, b"fg"]
    stream = b"".join(struct.pack(">i", len(f)) + f for f in frames)
    for step in (1, 2, 3, 5, 7, 64, len(stream)):
        splitter = FrameSplitter(1000)
        got = [f for i in range(0, len(stream), step) for f in splitter.feed(stream[i : i + step])]
        assert got == frames
        assert splitter.pending == 0


@pytest.mark.parametrize("prefix", ["7fffffff", "80000000", "ffffffff", "00000000", "00000001", "000003e9"])
def test_bad_frame_sizes(prefix: str) -> None:
    """A size that cannot be is refused as soon as it is read, and nothing is kept (docs/reliability.md)."""
    splitter = FrameSplitter(1000)
    with pytest.raises(InvalidRequest):
        splitter.feed(bytes.fromhex(prefix))
    assert splitter.pending == 0
    with pytest.raises(InvalidRequest):
        splitter.feed(b"more")


def test_frames_before_a_bad_one_are_served() -> None:
    """Requests that arrived whole before a bad size are given back first."""
    splitter = FrameSplitter(1000)
    assert splitter.feed(b"\0\0\0\2ab\xff\xff\xff\xff") == [b"ab"]
    assert splitter.broken is not None
    with pytest.raises(InvalidRequest):
        splitter.feed(b"")


def test_a_slow_frame_is_joined_once() -> None:
    """A frame that arrives byte by byte is held, counted, and given back whole."""
    splitter = FrameSplitter(1000)
    stream = struct.pack(">i", 500) + b"x" * 500
    for i in range(len(stream) - 1):
        assert splitter.feed(stream[i : i + 1]) == []
        assert splitter.pending == i + 1
    assert splitter.feed(stream[-1:]) == [b"x" * 500]


def test_acked_produce() -> None:
    """The extension: a produce that is answered with its offsets, or with why not."""
    request = AckedProduceRequest(AckLevel.FLUSHED, ProduceRequest("t", 3, b"data"))
    assert request.encode() == bytes.fromhex("00000013 0064 0002 0001 74 00000003 00000004 64617461")
    assert parse_request(request.encode()[4:]) == request
    assert encode_acked_response(10, 25) == bytes.fromhex("00000012 0000 000000000000000a 0000000000000019")
    assert decode_acked_response(encode_acked_response(10, 25)[4:]) == (10, 25)


@pytest.mark.parametrize(
    "error", [LogFull, LogFailed, FlushFailed, RequestTimedOut, MessageTooLarge, WrongPartition, UnknownError]
)
def test_acked_errors(error: type[Kafka2011Error]) -> None:
    """A refused produce names the same error on the client's side, and whether anything was appended."""
    with pytest.raises(Kafka2011Error) as caught:
        decode_acked_response(encode_acked_error(error("why"))[4:])

    assert type(caught.value) is error
    assert ("nothing was appended" in str(caught.value)) == (error in (LogFull, LogFailed, MessageTooLarge))


def test_unforeseen_errors_are_minus_one() -> None:
    """What has no code of its own is answered -1."""
    with pytest.raises(UnknownError):
        decode_acked_response(encode_acked_error(Kafka2011Error("odd"))[4:])


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\0\0\0\0\5", b"\0\0\0\0\0\1\0"])
def test_answers_that_end_early(body: bytes) -> None:
    """A client refuses an answer that is shorter than it says."""
    fetch = FetchRequest("t", 0, 0, 1)
    with pytest.raises(InvalidRequest):
        decode_multifetch_response(body, [fetch])
    with pytest.raises(InvalidRequest):
        decode_offsets_response(body, "t-0")
    with pytest.raises(InvalidRequest):
        decode_acked_response(body)


def test_an_error_from_the_wire_names_the_offset() -> None:
    """A 0.7 answer carries a code only; the error still says which offset of what (docs/protocol.md)."""
    with pytest.raises(OffsetOutOfRange, match="offset 77 is outside clicks-3"):
        decode_fetch_response(b"\0\1", FetchRequest("clicks", 3, 77, 100))
