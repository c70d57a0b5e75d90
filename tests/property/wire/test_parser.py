"""The parsers are total: any bytes give a value or a named error (reliability §5.6)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka2011.errors import InvalidRequest, WireError
from kafka2011.wire import (
    Codec,
    FrameSplitter,
    Message,
    MessageSet,
    decode_set,
    encode_message,
    encode_set,
    parse_request,
    valid_bytes,
    validate_set,
)

quick = settings(max_examples=150, deadline=None, derandomize=True, database=None)

payloads = st.lists(st.binary(max_size=40), max_size=30)
messages = st.lists(st.builds(Message, st.binary(max_size=40), st.sampled_from([0, 1])), max_size=30)


@quick
@given(messages, st.integers(0, 2**40), st.sampled_from(Codec))
def test_round_trip(sent: list[Message], offset: int, codec: Codec) -> None:
    """What was encoded is what is decoded, in every format (spec §1)."""
    data = MessageSet(sent).encode(codec)
    got = decode_set(data, offset)
    assert [(m.payload, m.magic) for m in got] == [(m.payload, m.magic) for m in sent]
    assert not got or got[-1].next_offset == offset + len(data)
    summary = validate_set(data)
    assert (summary.size, summary.n_messages) == (len(data), len(sent))


@quick
@given(payloads)
def test_every_prefix(sent: list[bytes]) -> None:
    """A prefix of a set is its whole entries, or a size error before the first one is whole (spec §1.2)."""
    data = encode_set(sent)
    for cut in range(0, len(data), max(1, len(data) // 40)):
        try:
            got = decode_set(data[:cut])
        except WireError:
            assert 4 <= cut < 10 + len(sent[0])
        else:
            assert [m.payload for m in got] == sent[: len(got)]
            assert valid_bytes(data[:cut]) == validate_set(data[:cut]).size == (got[-1].next_offset if got else 0)


@quick
@given(st.binary(min_size=1, max_size=40), st.sampled_from([0, 1]), st.data())
def test_every_flip_of_crc_and_payload_is_found(payload: bytes, magic: int, data: st.DataObject) -> None:
    """No single flipped byte of checksum or payload goes unseen (§3.3)."""
    whole = encode_message(Message(payload, magic))
    at = data.draw(st.integers(len(whole) - len(payload) - 4, len(whole) - 1))
    bad = bytearray(whole)
    bad[at] ^= data.draw(st.integers(1, 255))
    for read in (decode_set, validate_set):
        try:
            read(bytes(bad))
        except WireError:
            continue
        raise AssertionError(f"a flip at byte {at} was not found")


@quick
@given(payloads, st.sampled_from(Codec), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4))
def test_mutated_sets(sent: list[bytes], codec: Codec, changes: list[tuple[int, int]]) -> None:
    """Whatever is changed in a set, reading gives messages or a WireError, the same for broker and consumer."""
    data = bytearray(encode_set(sent, codec=codec))
    for where, value in changes:
        if data:
            data[where % len(data)] = value
    outcomes = []
    for read in (lambda d: len(decode_set(d)), lambda d: validate_set(d).n_messages):
        try:
            outcomes.append(read(bytes(data)))
        except WireError:
            outcomes.append(None)
    assert outcomes[0] == outcomes[1]


@quick
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Garbage gives a value or a named error, nothing else."""
    for read in (decode_set, validate_set, valid_bytes):
        try:
            read(data)
        except WireError:
            pass
    for key in (b"", b"\0\0", b"\0\1", b"\0\2", b"\0\3", b"\0\4", b"\0\x64"):
        try:
            parse_request(key + data)
        except InvalidRequest:
            pass


@quick
@given(st.lists(st.binary(max_size=60), max_size=10), st.integers(4, 100))
def test_any_stream(chunks: list[bytes], max_size: int) -> None:
    """A splitter fed garbage gives frames within its limit or InvalidRequest, and holds no more than one frame."""
    splitter = FrameSplitter(max_size)
    try:
        for chunk in chunks:
            assert all(2 <= len(frame) <= max_size for frame in splitter.feed(chunk))
            assert splitter.pending <= max_size + 4
    except InvalidRequest:
        assert splitter.pending == 0
