"""The test vectors of the 0.7 fact sheet (docs/protocol.md), byte for byte."""

from __future__ import annotations

import hashlib

import pytest

from kafka2011.errors import InvalidMessageSize, OffsetOutOfRange, UnknownError, WrongPartition
from kafka2011.wire import (
    EARLIEST,
    LATEST,
    Codec,
    FetchRequest,
    Message,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    Request,
    crc32,
    decode_set,
    encode_message,
    encode_set,
    parse_request,
    valid_bytes,
    validate_set,
)
from kafka2011.wire.fetch import decode_fetch_response, encode_fetch_header, encode_fetch_response
from kafka2011.wire.multifetch import decode_multifetch_response, encode_multifetch_header
from kafka2011.wire.offsets import decode_offsets_response, encode_offsets_response


def h(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


M0 = h("0000000a 00 3610a686 68656c6c6f")
M1 = h("0000000b 01 00 3610a686 68656c6c6f")
M2 = h("00000006 01 00 00000000")
M3 = h("0000000b01003610a68668656c6c6f 0000000b01005a2fe9967468657265")
M4 = h(
    "00000035 01 01 6bf42ab1 1f8b0800000000000000 636060e06664301358d696919a9393cf00e646e9bf9c5692915a940a00"
    "85ba712c1e000000"
)
M5 = h(
    "0000003a 01 02 507fed60 82534e4150505900 00000001 00000001 00000020 1e74"
    "0000000b01003610a68668656c6c6f0000000b01005a2fe9967468657265"
)
HELLO_THERE = [b"hello", b"there"]


@pytest.mark.parametrize(
    ("payload", "crc"), [(b"", 0), (b"hello", 0x3610A686), (b"there", 0x5A2FE996), (b"testing", 0xE8F35A06)]
)
def test_crc(payload: bytes, crc: int) -> None:
    """The checksum is the ordinary CRC-32 of the payload alone (docs/protocol.md)."""
    assert crc32(payload) == crc
    assert crc32(b"123456789") == 0xCBF43926


@pytest.mark.parametrize(
    ("message", "data"),
    [
        (Message(b"hello", magic=0), M0),
        (Message(b"hello"), M1),
        (Message(b""), M2),
        (Message(b"testing", magic=0), h("0000000c00e8f35a0674657374696e67")),
        (Message(b"testing"), h("0000000d0100e8f35a0674657374696e67")),
    ],
)
def test_messages(message: Message, data: bytes) -> None:
    """M0, M1, M2, M6: one entry in both formats, written and read (docs/protocol.md)."""
    assert encode_message(message) == data
    assert message.size == len(data)
    (read,) = decode_set(data, 1000)
    assert (read.payload, read.magic) == (message.payload, message.magic)
    assert (read.offset, read.next_offset) == (1000, 1000 + len(data))


def test_set() -> None:
    """M3: a set is its entries end to end, and resume offsets are byte positions (docs/protocol.md)."""
    assert encode_set(HELLO_THERE) == M3
    assert [(m.payload, m.next_offset) for m in decode_set(M3, 1000)] == [(b"hello", 1015), (b"there", 1030)]


@pytest.mark.parametrize(("wrapper", "codec"), [(M4, Codec.GZIP), (M5, Codec.SNAPPY)])
def test_wrappers(wrapper: bytes, codec: Codec) -> None:
    """M4, M5: inner messages resume at the wrapper, the last one after it (docs/protocol.md)."""
    after = 1000 + len(wrapper)
    assert [(m.payload, m.next_offset) for m in decode_set(wrapper, 1000)] == [(b"hello", 1000), (b"there", after)]
    assert validate_set(wrapper).n_messages == 2
    assert validate_set(wrapper).n_entries == 1
    (shallow,) = decode_set(wrapper, 1000, deep=False)
    assert shallow.next_offset == after
    assert [m.payload for m in decode_set(encode_set(HELLO_THERE, codec=codec))] == HELLO_THERE


def test_snappy_and_gzip_headers() -> None:
    """Written wrappers begin as the JVM's do (docs/protocol.md)."""
    assert encode_set(HELLO_THERE, codec=Codec.GZIP)[10:20] == M4[10:20]
    assert encode_set(HELLO_THERE, codec=Codec.SNAPPY)[10:26] == M5[10:26]


REQUESTS: list[tuple[Request, bytes]] = [
    (ProduceRequest("test", 0, M3), h("0000002e 0000 0004 74657374 00000000 0000001e") + M3),
    (ProduceRequest("test", -1, M0), h("0000001e 0000 0004 74657374 ffffffff 0000000e 0000000a003610a68668656c6c6f")),
    (FetchRequest("test", 0, 0, 1048576), h("00000018 0001 0004 74657374 00000000 0000000000000000 00100000")),
    (
        MultiFetchRequest((FetchRequest("test1", 0, 0, 10000), FetchRequest("test2", 1, 15, 10000))),
        h(
            "00000032 0002 0002 0005 7465737431 00000000 0000000000000000 00002710"
            "0005 7465737432 00000001 000000000000000f 00002710"
        ),
    ),
    (
        MultiProduceRequest((ProduceRequest("test1", 0, M1), ProduceRequest("test2", 0, M3[15:]))),
        h(
            "00000040 0003 0002 0005 7465737431 00000000 0000000f 0000000b01003610a68668656c6c6f"
            "0005 7465737432 00000000 0000000f 0000000b01005a2fe9967468657265"
        ),
    ),
    (OffsetsRequest("test", 0, LATEST, 1), h("00000018 0004 0004 74657374 00000000 ffffffffffffffff 00000001")),
    (OffsetsRequest("kafka", 0, EARLIEST, 10), h("00000019 0004 0005 6b61666b61 00000000 fffffffffffffffe 0000000a")),
]


@pytest.mark.parametrize(("request_", "data"), REQUESTS)
def test_requests(request_: Request, data: bytes) -> None:
    """R1 to R7: every request, written and read; bytes after the body are ignored (docs/protocol.md)."""
    assert request_.encode() == data
    assert parse_request(data[4:]) == request_
    assert parse_request(data[4:] + b"more") == request_


FETCH = FetchRequest("test", 0, 1000, 100)


def test_fetch_answers() -> None:
    """S1, S2, S3: bytes, bytes with a partial tail, nothing (docs/protocol.md)."""
    assert encode_fetch_response(M3) == h("00000020 0000") + M3
    tail = M3 + h("0000000b010036")
    assert encode_fetch_response(tail) == h("00000027 0000") + tail
    got = decode_fetch_response(encode_fetch_response(tail)[4:], FETCH)
    assert [m.payload for m in decode_set(got, 1000)] == HELLO_THERE
    assert valid_bytes(got) == 30
    assert encode_fetch_response() == h("00000002 0000")
    assert encode_fetch_header(30) == h("00000020 0000")


@pytest.mark.parametrize(
    ("code", "data", "error"),
    [
        (1, "00000002 0001", OffsetOutOfRange),
        (3, "00000002 0003", WrongPartition),
        (-1, "00000002 ffff", UnknownError),
    ],
)
def test_fetch_errors(code: int, data: str, error: type[Exception]) -> None:
    """S4, S5, S6: the error codes a 0.7 broker sends (docs/protocol.md)."""
    assert encode_fetch_response(error=code) == h(data)
    with pytest.raises(error):
        decode_fetch_response(h(data)[4:], FETCH)


def test_multifetch_answer() -> None:
    """S7: one bad partition leaves the other readable (docs/protocol.md)."""
    parts = [encode_fetch_response(M1), encode_fetch_response(error=1)]
    data = encode_multifetch_header([len(M1), 0]) + b"".join(parts)
    assert data == h("0000001d 0000 00000011 0000 0000000b01003610a68668656c6c6f 00000002 0001")
    good, bad = decode_multifetch_response(data[4:], [FETCH, FETCH])
    assert good == M1
    assert isinstance(bad, OffsetOutOfRange)
    assert encode_multifetch_header([]) == h("00000002 0000")


def test_offsets_answers() -> None:
    """S8, S9: offsets newest first, or none (docs/protocol.md)."""
    data = h("00000026 0000 00000004 00000000000000f0 00000000000000d8 000000000000006c 0000000000000000")
    assert encode_offsets_response([240, 216, 108, 0]) == data
    assert decode_offsets_response(data[4:], "t-0") == [240, 216, 108, 0]
    assert encode_offsets_response([]) == h("00000006 0000 00000000")
    assert decode_offsets_response(h("0000 00000000"), "t-0") == []


def test_old_log_file() -> None:
    """D1: the log of a real pre-0.7 broker is made of the same bytes, and is read (docs/protocol.md)."""
    data = encode_set([b"x" * 100] * 100, magic=0)
    assert hashlib.sha256(data).hexdigest() == "0db77e65c9cbe560e47d45e6dd43b8e61adf0c0e39c6ed9fe16890ef8d109625"
    assert len(decode_set(data)) == validate_set(data).n_messages == 100


def test_small_fetch() -> None:
    """A fetch smaller than its first message is a size error, not silence (docs/protocol.md, docs/paper-vs-code.md)."""
    with pytest.raises(InvalidMessageSize):
        decode_set(M1[:10])
    with pytest.raises(InvalidMessageSize):
        validate_set(M1[:10])
    with pytest.raises(InvalidMessageSize):
        valid_bytes(M1[:10])
