"""Message sets to columns: offsets, wrappers and damage."""

from __future__ import annotations

import pytest

from hadoop_etl import damage
from hadoop_etl.damage import good_starts
from hadoop_etl.entries import Entries, read_entries
from hadoop_etl.split import walk_to
from kafka2011.wire import encode_set
from kafka2011.wire.compression import compress
from kafka2011.wire.message import Codec, Message, encode_message


def rows_of(entries: Entries) -> list[tuple[int, int, int, bytes]]:
    return sorted(
        (int(o), int(i), int(n), payload)
        for rows in entries.rows
        for o, i, n, payload in zip(rows.offset, rows.index, rows.next_offset, rows.payload.to_pylist(), strict=True)
    )


def test_offsets_are_byte_positions() -> None:
    """The next message's offset is this one's plus its length (§3.1)."""
    data = encode_set([b"a", b"bb", b""])
    entries = read_entries(data, 1000, at_end=True)
    assert rows_of(entries) == [(1000, 0, 1011, b"a"), (1011, 0, 1023, b"bb"), (1023, 0, 1033, b"")]
    assert entries.size == len(data)
    assert not entries.dead


def test_both_magics_in_one_set() -> None:
    """Magic 0 and magic 1 messages mix freely (docs/protocol.md)."""
    data = encode_set([b"old"] * 3, magic=0) + encode_set([b"new"] * 3) + encode_set([b"old"], magic=0)
    entries = read_entries(data, 0, at_end=True)
    assert [payload for *_, payload in rows_of(entries)] == [b"old"] * 3 + [b"new"] * 3 + [b"old"]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_messages_in_a_wrapper_share_its_offset(codec: Codec) -> None:
    """Inner messages have no offset of their own; their place inside tells them apart (docs/protocol.md)."""
    wrapper = encode_set([b"x", b"y", b"z"], codec=codec)
    entries = read_entries(encode_set([b"before"]) + wrapper, 0, at_end=True)
    start, end = 16, 16 + len(wrapper)
    assert rows_of(entries) == [(0, 0, 16, b"before"), *((start, i, end, p) for i, p in enumerate((b"x", b"y", b"z")))]


def test_wrapper_in_a_wrapper() -> None:
    """A wrapper inside a wrapper is legal; places count through (docs/protocol.md)."""
    inner = encode_set([b"1", b"2"], codec=Codec.GZIP)
    data = encode_message(Message(compress(Codec.SNAPPY, inner + encode_set([b"3"])), attributes=Codec.SNAPPY))
    found = rows_of(read_entries(data, 0, at_end=True))
    assert sorted(payload for *_, payload in found) == [b"1", b"2", b"3"]
    assert [index for _, index, *_ in found] == [0, 1, 2]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (Message(b"not gzip", attributes=1), "gzip"),
        (Message(b"x", attributes=3), "codec 3"),
        (Message(compress(Codec.SNAPPY, b""), attributes=2), "empty wrapper"),
    ],
)
def test_a_wrapper_that_cannot_be_opened_is_one_dead_row(entry: Message, reason: str) -> None:
    """Nothing is dropped: what cannot be read keeps its offsets, its bytes and the reason (§4)."""
    data = encode_set([b"a"]) + encode_message(entry) + encode_set([b"b"])
    entries = read_entries(data, 0, at_end=True)
    assert [payload for *_, payload in rows_of(entries)] == [b"a", b"b"]
    (dead,) = entries.dead
    assert (dead.offset, dead.next_offset) == (11, 11 + entry.size)
    assert reason in dead.reason
    assert dead.data == entry.payload


def test_a_cut_off_entry_waits_for_more_bytes_unless_the_range_ends() -> None:
    """A partial entry at the end of a fetch is no damage (docs/protocol.md); at the end of the range it is."""
    data = encode_set([b"whole", b"cut off"])
    assert read_entries(data[:-1], 0, at_end=False).size == 15
    assert read_entries(data[:10], 0, at_end=False).size == 0
    ended = read_entries(data[:-1], 0, at_end=True)
    assert ended.size == len(data) - 1
    assert [(d.offset, d.next_offset) for d in ended.dead] == [(15, len(data) - 1)]


def test_an_impossible_length_is_damage_at_once() -> None:
    """A length no message can have does not make the reader wait for gigabytes."""
    data = encode_set([b"a"]) + b"\x7f\xff\xff\xff" + b"junk" * 10 + encode_set([b"b", b"c"])
    entries = read_entries(data, 0, at_end=False)
    assert [payload for *_, payload in rows_of(entries)] == [b"a", b"b", b"c"]
    assert len(entries.dead) == 1


def test_good_starts_finds_the_next_message() -> None:
    """A cut lands where two messages in a row are good."""
    data = encode_set([b"hello %d" % i for i in range(50)])
    assert next(good_starts(data, 5)) == 17
    assert next(good_starts(b"\0" * 500), None) is None


def test_a_damaged_length_that_ends_at_a_boundary_costs_one_row() -> None:
    """A length is believed only if the CRC is not right for another end: a flipped bit costs one row (§3.3)."""
    parts = [b"%06d" % i for i in range(6)]
    data = bytearray(encode_set(parts))
    data[16 + 3] ^= 16  # the second entry now ends where the fourth begins
    entries = read_entries(bytes(data), 0, at_end=True)
    assert [payload for *_, payload in rows_of(entries)] == [parts[0], *parts[2:]]
    assert [(dead.offset, dead.next_offset) for dead in entries.dead] == [(16, 32)]


def test_a_payload_made_of_lengths_does_not_stall_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for a boundary costs a bounded number of checks, whatever the payloads hold (issue 20, C)."""
    checked = []

    def counted(piece: bytes) -> int:
        checked.append(len(piece))
        return 0

    monkeypatch.setattr(damage, "crc32", counted)
    data = encode_set([b"\x00\x1f\x00\x00" * (1 << 18)] * 4)
    assert list(good_starts(data, 100)) == []
    assert sum(checked) <= 65 * len(data)


def test_a_limit_smaller_than_a_message_lets_one_message_through() -> None:
    """``--max-bytes`` never stops a load for good, however large the next message is (docs/etl.md)."""
    data = encode_set([b"x" * (5 << 20), b"y"])
    assert walk_to(lambda offset, size: data[offset : offset + size], 0, 1000) == (5 << 20) + 10
