"""Message sets: what a consumer reads, what a broker accepts (docs/protocol.md, docs/paper-vs-code.md)."""

from __future__ import annotations

import gzip

import cramjam
import pytest

from kafka2011.errors import InvalidMessage, InvalidMessageSize, WireError
from kafka2011.wire import (
    Codec,
    Limits,
    Message,
    MessageSet,
    decode_set,
    encode_message,
    encode_set,
    valid_bytes,
    validate_set,
)
from kafka2011.wire.compression import compress, decompress

HELLO = encode_message(Message(b"hello"))
THERE = encode_message(Message(b"there"))


def wrapper(data: bytes, codec: Codec = Codec.GZIP) -> bytes:
    return encode_message(Message(data, attributes=codec))


def test_the_paper_s_sample() -> None:
    """A message set is made from a message, as in the paper's sample producer (§3)."""
    one = MessageSet(Message(b"test message str"))
    assert len(one) == 1
    assert one == MessageSet([b"test message str"]) == MessageSet(b"test message str")
    assert list(MessageSet.decode(one.encode())) == [Message(b"test message str")]
    assert MessageSet().encode() == MessageSet().encode(Codec.GZIP) == b""


def test_iterating_twice_gives_the_same() -> None:
    """A set can be read again and again, and equals what was written (docs/paper-vs-code.md)."""
    messages = MessageSet([b"a", b"bb", b"ccc"])
    assert list(messages) == list(messages)
    assert hash(messages) == hash(MessageSet([b"a", b"bb", b"ccc"]))
    for codec in Codec:
        assert MessageSet.decode(messages.encode(codec)) == messages


@pytest.mark.parametrize("data", [HELLO, HELLO + THERE, wrapper(compress(Codec.GZIP, HELLO))])
def test_stray_bytes_do_not_change_valid_bytes(data: bytes) -> None:
    """Two stray bytes at the end are not part of the set (docs/paper-vs-code.md)."""
    assert valid_bytes(data + b"\0\0") == valid_bytes(data) == len(data)
    assert validate_set(data + b"\0\0").size == len(data)
    assert decode_set(data + b"\0\0") == decode_set(data)
    assert valid_bytes(b"") == 0


@pytest.mark.parametrize("cut", range(1, len(THERE)))
def test_a_later_truncated_entry_is_cut_off(cut: int) -> None:
    """The good prefix of a produced set counts, the cut-off tail does not (docs/protocol.md)."""
    summary = validate_set(HELLO + THERE[:-cut])
    assert (summary.size, summary.n_messages) == (len(HELLO), 1)


@pytest.mark.parametrize(
    "bad",
    [
        HELLO[:-1] + b"x",
        HELLO[:4] + b"\x02" + HELLO[5:],
        HELLO[:4] + b"\xff" + HELLO[5:],
        encode_message(Message(b"hello", attributes=3)),
        b"\xff\xff\xff\xff" + HELLO[4:],
        b"\0\0\0\0" + HELLO,
        b"\0\0\0\4abcd",
        b"\0\0\0\5\1\0\0\0\0",
    ],
    ids=["crc", "magic 2", "magic 255", "codec 3", "negative", "zero", "four", "magic 1 of 5"],
)
@pytest.mark.parametrize("before", [b"", HELLO], ids=["first", "second"])
def test_damaged_sets_are_refused(before: bytes, bad: bytes) -> None:
    """Wrong CRC, magic, codec or length refuses the whole set (docs/protocol.md)."""
    with pytest.raises(WireError):
        validate_set(before + bad)
    with pytest.raises(WireError):
        decode_set(before + bad)


def test_reserved_attribute_bits_are_ignored() -> None:
    """Bits 2 to 7 of the attributes mean nothing (docs/protocol.md)."""
    data = encode_message(Message(b"hello", attributes=0xFC))
    assert [m.payload for m in decode_set(data)] == [b"hello"]
    assert validate_set(data).n_messages == 1


def test_runs_and_mixtures_agree_with_entry_by_entry() -> None:
    """Reading equal-size runs at once gives what reading one by one gives (docs/protocol.md)."""
    payloads = [b"%05d" % i for i in range(300)] + [b"x" * (i % 7) for i in range(300)] + [b"12345"] * 100
    data = encode_set(payloads) + encode_set([b"old"] * 40, magic=0) + encode_set(payloads[:50])
    expected = payloads + [b"old"] * 40 + payloads[:50]
    messages = decode_set(data, 70)
    assert [m.payload for m in messages] == expected
    assert [m.offset for m in messages] == [70] + [m.next_offset for m in messages[:-1]]
    assert messages[-1].next_offset == 70 + len(data)
    summary = validate_set(data)
    assert (summary.size, summary.n_messages, summary.largest_payload) == (len(data), len(expected), 6)


@pytest.mark.parametrize("where", [0, 1, 20, 98, 99])
def test_one_bad_crc_in_a_long_run_is_found(where: int) -> None:
    """No message hides its damage among a hundred like it (§3.3)."""
    data = bytearray(encode_set([b"0123456789"] * 100))
    data[where * 20 + 15] ^= 1
    with pytest.raises(InvalidMessage, match=f"byte {where * 20} "):
        decode_set(bytes(data))
    with pytest.raises(InvalidMessage):
        validate_set(bytes(data))


def test_wrapper_in_a_wrapper() -> None:
    """A wrapper inside a wrapper gives its messages, flattened (docs/paper-vs-code.md); deeper is refused."""
    once = encode_set([b"a", b"b", b"c"], codec=Codec.GZIP)
    twice = wrapper(compress(Codec.SNAPPY, once), Codec.SNAPPY)
    assert [m.payload for m in decode_set(twice)] == [b"a", b"b", b"c"]
    assert validate_set(twice).n_messages == 3
    thrice = wrapper(compress(Codec.GZIP, twice))
    with pytest.raises(InvalidMessage, match="nested"):
        decode_set(thrice)
    with pytest.raises(InvalidMessage, match="nested"):
        validate_set(thrice)


def test_an_empty_wrapper_is_skipped_but_its_bytes_count() -> None:
    """A wrapper around nothing delivers nothing and takes its place in the log (docs/protocol.md)."""
    data = HELLO + wrapper(compress(Codec.GZIP, b"")) + THERE
    assert [m.payload for m in decode_set(data)] == [b"hello", b"there"]
    assert validate_set(data).size == len(data)
    assert validate_set(data).n_messages == 2


def test_foreign_compression_is_read() -> None:
    """Any legal gzip header, and a raw snappy block, are accepted (docs/protocol.md)."""
    for data, codec in ((gzip.compress(HELLO), Codec.GZIP), (bytes(cramjam.snappy.compress_raw(HELLO)), Codec.SNAPPY)):
        assert [m.payload for m in decode_set(wrapper(data, codec))] == [b"hello"]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_large_sets_round_trip(codec: Codec) -> None:
    """A set of many snappy blocks comes back whole (docs/protocol.md)."""
    data = bytes(range(256)) * 1000
    assert decompress(codec, compress(codec, data), len(data)) == data
    with pytest.raises(InvalidMessage):
        decompress(codec, compress(codec, data), len(data) - 1)


@pytest.mark.parametrize(
    ("data", "codec"),
    [
        (compress(Codec.GZIP, HELLO)[:-1], Codec.GZIP),
        (compress(Codec.GZIP, HELLO) + b"x", Codec.GZIP),
        (compress(Codec.GZIP, HELLO)[:-8] + b"12345678", Codec.GZIP),
        (b"", Codec.GZIP),
        (b"not gzip", Codec.GZIP),
        (compress(Codec.SNAPPY, HELLO)[:-1], Codec.SNAPPY),
        (compress(Codec.SNAPPY, HELLO) + b"\0\0", Codec.SNAPPY),
        (compress(Codec.SNAPPY, HELLO)[:16] + b"\x7f\xff\xff\xff", Codec.SNAPPY),
        (b"\xff\xff\xff\xff\x0f" + bytes(20), Codec.SNAPPY),
        (b"", Codec.SNAPPY),
    ],
)
def test_damaged_wrappers_are_refused(data: bytes, codec: Codec) -> None:
    """A compressed stream must be whole, and nothing may follow it (reliability M3)."""
    with pytest.raises(InvalidMessage):
        validate_set(wrapper(data, codec))
    with pytest.raises(InvalidMessage):
        decode_set(wrapper(data, codec))


def test_bombs_are_refused() -> None:
    """A few bytes that inflate to very many are refused by broker and consumer, at the limit (reliability M3)."""
    bomb = compress(Codec.GZIP, bytes(16 << 20))
    nested = compress(Codec.GZIP, wrapper(bomb))
    for data in (wrapper(bomb), wrapper(nested)):
        with pytest.raises(InvalidMessage, match="inflates"):
            validate_set(data)
        with pytest.raises(InvalidMessage, match="inflates"):
            decode_set(data)


def test_limits_hold_per_set_for_the_broker_and_per_entry_for_the_consumer() -> None:
    """What a broker accepted in several sets can be read in one fetch."""
    limits = Limits(max_inflated=1000)
    one = encode_set([bytes(700)], codec=Codec.GZIP)
    assert validate_set(one, limits=limits).n_messages == 1
    with pytest.raises(InvalidMessage):
        validate_set(one + one, limits=limits)
    assert len(decode_set(one * 5, limits=limits)) == 5


def test_short_repetitive_logs_may_compress_very_well() -> None:
    """The ratio is asked only of wrappers that inflate to more than a megabyte."""
    data = encode_set([b"GET / 200" * 20] * 2000, codec=Codec.GZIP)
    assert validate_set(data).n_messages == 2000


def test_too_many_messages_are_refused() -> None:
    """A set of a million empty messages is refused, plain or wrapped (reliability M5)."""
    limits = Limits(max_messages=1000)
    many = encode_set([b""] * 1001)
    with pytest.raises(InvalidMessage, match="more than 1000"):
        validate_set(many, limits=limits)
    with pytest.raises(InvalidMessage, match="more than 1000"):
        decode_set(wrapper(compress(Codec.GZIP, many)), limits=limits)
    assert len(decode_set(many, limits=limits)) == 1001


def test_unknown_magic_is_not_written() -> None:
    """Only magic 0 and 1 exist (docs/protocol.md)."""
    with pytest.raises(InvalidMessage):
        encode_message(Message(b"x", magic=2))
    with pytest.raises(InvalidMessage):
        _ = Message(b"x", attributes=3).codec
    assert Message(b"x", attributes=2).codec is Codec.SNAPPY
    assert Message(b"x", magic=0, attributes=2).codec is Codec.NONE


def test_first_entry_cut_off_is_an_error() -> None:
    """An entry cut off at the start of a set is a size error for broker and consumer alike (docs/protocol.md)."""
    for cut in range(4, len(HELLO)):
        with pytest.raises(InvalidMessageSize):
            validate_set(HELLO[:cut])
