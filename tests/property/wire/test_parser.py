"""The parsers are total: any bytes give a value or a named error (docs/reliability.md)."""

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
from kafka2011.wire.entry import read_entry

quick = settings(max_examples=150, deadline=None, derandomize=True, database=None)

payloads = st.lists(st.binary(max_size=40), max_size=30)
messages = st.lists(st.builds(Message, st.binary(max_size=40), st.sampled_from([0, 1])), max_size=30)


@quick
@given(messages, st.integers(0, 2**40), st.sampled_from(Codec))
def test_round_trip(sent: list[Message], offset: int, codec: Codec) -> None:
    """What was encoded is what is decoded, in every format (docs/protocol.md)."""
    data = MessageSet(sent).encode(codec)
    got = decode_set(data, offset)
    assert [(m.payload, m.magic) for m in got] == [(m.payload, m.magic) for m in sent]
    assert not got or got[-1].next_offset == offset + len(data)
    summary = validate_set(data)
    assert (summary.size, summary.n_messages) == (len(data), len(sent))


@quick
@given(payloads)
def test_every_prefix(sent: list[bytes]) -> None:
    """A prefix of a set is its whole entries, or a size error before the first one is whole (docs/protocol.md)."""
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


shapes = st.lists(st.tuples(st.integers(0, 30), st.sampled_from([1, 2, 15, 16, 17, 31, 33, 300])), max_size=6)
"""Sizes, and how many of each follow each other: around the numbers at which runs are taken at once."""


@quick
@given(shapes, st.none() | st.tuples(st.integers(0, 10**6), st.integers(1, 255)))
def test_runs_of_any_shape(shape: list[tuple[int, int]], flip: tuple[int, int] | None) -> None:
    """Sets with runs in them read as they do entry by entry, to the same message and the same error (§3.3)."""
    numbered = iter(range(10**6))
    sent = [next(numbered).to_bytes(3, "big") + bytes(size) for size, count in shape for _ in range(count)]
    data = bytearray(encode_set(sent))
    if flip is not None and data:
        data[flip[0] % len(data)] ^= flip[1]
    slow: list[tuple[bytes, int]] | None = []
    try:
        pos = 0
        while (entry := read_entry(bytes(data), pos)) is not None:
            pos += entry.size
            if entry.attributes & 3:
                return  # the flip made a wrapper of it: another test's business
            slow.append((entry.payload, 7 + pos))
    except WireError:
        slow = None
    for read in (_decoded, _validated):
        try:
            found = read(bytes(data))
        except WireError:
            found = None
        assert found == (slow if read is _decoded or slow is None else len(slow))


def _decoded(data: bytes) -> list[tuple[bytes, int]] | int:
    return [(message.payload, message.next_offset) for message in decode_set(data, 7)]


def _validated(data: bytes) -> list[tuple[bytes, int]] | int:
    return validate_set(data).n_messages


@quick
@given(shapes, st.lists(st.integers(1, 3000), max_size=8))
def test_frames_however_they_arrive(shape: list[tuple[int, int]], cuts: list[int]) -> None:
    """Requests come out of a stream whole and in order, wherever the network cut it (docs/protocol.md)."""
    numbered = iter(range(10**6))
    frames = [next(numbered).to_bytes(3, "big") + bytes(size) for size, count in shape for _ in range(count)]
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    splitter, found, pos = FrameSplitter(), [], 0
    for cut in [*cuts, len(stream)]:
        found += splitter.feed(stream[pos : pos + cut])
        pos = min(pos + cut, len(stream))
    assert found == frames
    assert splitter.pending == 0
