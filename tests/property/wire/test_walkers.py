"""The compiled walker and the pure one agree on any bytes whatever (issue 23, point 1)."""

from __future__ import annotations

import random
import zlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka2011.wire import Message, MessageAndOffset, encode_message, pure, walk

if walk.compiled is None:
    pytest.skip("the extension kafka2011.wire._walk was not compiled", allow_module_level=True)
compiled = walk.compiled

more = settings(max_examples=400, deadline=None, derandomize=True, database=None)

entries = st.builds(
    lambda payload, magic, attributes: encode_message(Message(payload, magic, attributes)),
    st.binary(max_size=200),
    st.sampled_from([0, 1]),
    st.sampled_from([0, 0, 0, 0, 1, 2, 3, 4, 255]),
)


@st.composite
def nearly_sets(draw: st.DrawFn) -> bytes:
    """A set with some bytes changed, some cut off, or something put between its entries."""
    parts = draw(st.lists(st.one_of(entries, entries, entries, st.binary(max_size=12)), max_size=12))
    data = bytearray(b"".join(parts))
    for _ in range(draw(st.integers(0, 2))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


def cut(walker: type[pure.Row[MessageAndOffset]] | object, data: bytes, pos: int, base: int) -> tuple[object, ...]:
    """Everything ``cut`` tells."""
    end, row = walker.cut(MessageAndOffset, data, pos, base)  # type: ignore[attr-defined]
    views = [bytes(view) for view in row.views()]
    assert [message.payload for message in row] == views
    return end, list(row), list(row.offsets), len(row), views


@more
@given(nearly_sets(), st.data(), st.sampled_from([0, 1, 2**31, 2**40]), st.booleans())
@example(b"\0\0\0\5\0\0\0\0\0", None, 0, False)
@example(b"\0\0\0\6\1\0\0\0\0\0" + b"\0\0\0\5\0\0\0\0\0", None, 7, True)
def test_walking(data: bytes, choice: st.DataObject | None, base: int, wrappers: bool) -> None:
    """Both find the same entries, in bytes, bytearrays and views of them."""
    pos = choice.draw(st.integers(0, len(data))) if choice else 0
    assert compiled.check(data, pos, wrappers) == pure.check(data, pos, wrappers)
    assert cut(compiled, data, pos, base) == cut(pure, data, pos, base)
    assert cut(compiled, memoryview(bytearray(data)), pos, base) == cut(pure, data, pos, base)  # type: ignore[arg-type]


@more
@given(st.lists(st.binary(max_size=300), max_size=20), st.binary(max_size=9), st.integers(1, 7), st.integers(0, 900))
def test_making(payloads: list[bytes], head: bytes, batch_size: int, most: int) -> None:
    """Both make the same sets and requests, and refuse the same."""

    def made(walker: object) -> bytes | str:
        try:
            return walker.encode(payloads, head, batch_size, most)  # type: ignore[attr-defined,no-any-return]
        except OverflowError as error:
            return str(error)

    assert made(compiled) == made(pure)


@more
@given(
    st.lists(st.one_of(st.binary(max_size=9), st.binary(max_size=9).map(lambda p: len(p).to_bytes(4, "big") + p))),
    st.integers(0, 3),
    st.integers(0, 300),
)
def test_splitting(parts: list[bytes], smallest: int, largest: int) -> None:
    """Both cut the same frames out of a stream."""
    data = b"".join(parts)
    assert compiled.split(data, 0, smallest, largest) == pure.split(data, 0, smallest, largest)


def test_checksums() -> None:
    """The folded CRC-32 is zlib's, for every length about which folding is special, and some long ones (§3.3)."""
    source = random.Random(23)
    for size in [*range(300), 1023, 4096, 65537]:
        payload = source.randbytes(size)
        assert compiled.encode([payload], b"", 0, 0)[6:10] == zlib.crc32(payload).to_bytes(4, "big"), size


def test_positions_outside_are_refused() -> None:
    """No position, offset or class from outside makes the compiled walker leave its bytes."""
    data = encode_message(Message(b"x"))
    for pos in (-1, len(data) + 1, 2**62, -(2**62)):
        for call in (
            lambda: compiled.check(data, pos, False),  # noqa: B023
            lambda: compiled.cut(MessageAndOffset, data, pos, 0),  # noqa: B023
            lambda: compiled.split(data, pos, 0, 9),  # noqa: B023
        ):
            with pytest.raises(ValueError, match="position"):
                call()
    for base in (-1, 2**63 - 1):
        with pytest.raises(ValueError, match="offset"):
            compiled.cut(MessageAndOffset, data, 0, base)
    for kind in (list, object, MessageAndOffset((b"", 0, 0, 1)), None):
        with pytest.raises(TypeError):
            compiled.cut(kind, data, 0, 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        compiled.encode([b"x", "text"], b"", 0, 0)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="requests"):
        compiled.encode([b"x"], b"head", 0, 9)


def test_views_keep_their_bytes() -> None:
    """A view of a payload holds the bytes it shows, whatever happens to the set and its buffer."""
    buffer = bytearray(encode_message(Message(b"kept")) * 3)
    views = compiled.cut(MessageAndOffset, memoryview(buffer), 0, 0)[1].views()
    with pytest.raises(BufferError):
        buffer.clear()  # while a view is out, the buffer cannot be taken from under it
    del buffer
    assert [bytes(view) for view in views] == [b"kept"] * 3
