"""Columns against the plain reader, damage, and the combined CRC."""

from __future__ import annotations

import zlib
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hadoop_etl.checksum import combined
from hadoop_etl.entries import read_entries
from hadoop_etl.split import make_splits
from kafka2011.wire import decode_set, encode_set
from kafka2011.wire.message import Codec
from tests.unit.etl.test_entries import rows_of

payloads = st.lists(st.binary(max_size=60) | st.sampled_from([b"", b"\0" * 12, b"same"]), min_size=1, max_size=40)
sets = st.lists(
    st.builds(
        lambda p, c, m: encode_set(p, codec=c, magic=m) if c is Codec.NONE else encode_set(p, codec=c),
        payloads,
        st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY]),
        st.sampled_from([0, 1]),
    ),
    min_size=1,
    max_size=5,
).map(b"".join)


@given(sets, st.integers(0, 1 << 40))
@settings(deadline=None, max_examples=60)
def test_columns_hold_what_the_plain_reader_reads(data: bytes, offset: int) -> None:
    """Reading as columns and reading message by message give the same messages at the same offsets (§3.1)."""
    found = rows_of(read_entries(data, offset, at_end=True))
    plain = decode_set(data, offset)
    assert sorted((o, p) for o, _, _, p in found) == sorted((m.offset, m.payload) for m in plain)


@given(st.lists(st.binary(max_size=80), max_size=50))
@settings(deadline=None, max_examples=60)
def test_one_crc_for_many(parts: list[bytes]) -> None:
    """The CRC of payloads laid end to end follows from each one's (§3.3)."""
    sizes = np.array([len(p) for p in parts], dtype=np.int64)
    crcs = np.array([zlib.crc32(p) for p in parts], dtype=np.uint32)
    assert combined(crcs, sizes.sum() - np.cumsum(sizes)) == zlib.crc32(b"".join(parts))


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=3, max_size=30), st.data())
@settings(deadline=None, max_examples=150)
def test_one_flipped_bit_costs_one_row_at_most(parts: list[bytes], data: st.DataObject) -> None:
    """Damage is one dead row; every other message is read, and the offsets still add up (§3.3)."""
    good = encode_set(parts)
    bit = data.draw(st.integers(0, len(good) * 8 - 1))
    bad = bytearray(good)
    bad[bit // 8] ^= 1 << bit % 8
    entries = read_entries(bytes(bad), 0, at_end=True)
    rows = rows_of(entries)
    covered = sorted([(o, n) for o, i, n, _ in rows if i == 0] + [(d.offset, d.next_offset) for d in entries.dead])
    assert covered[0][0] == 0
    assert covered[-1][1] == len(good) == entries.size
    assert all(a[1] == b[0] for a, b in pairwise(covered))
    # Attributes are outside the CRC (docs/protocol.md): a flipped codec bit makes one unreadable wrapper.
    assert len(rows) >= len(parts) - 1
    assert {p for *_, p in rows} <= set(parts)


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=60), st.integers(64, 2000))
@settings(deadline=None, max_examples=60)
def test_cuts_are_boundaries_and_cover_the_range(parts: list[bytes], size: int) -> None:
    """Splits meet, cover the range, and begin where messages begin (§3.1)."""
    data = encode_set(parts)
    splits = make_splits(0, len(data), [], size, lambda offset, most: data[offset : offset + most])
    boundaries = {m.offset for m in decode_set(data)} | {len(data)}
    assert splits[0].start == 0
    assert splits[-1].end == len(data)
    assert all(a.end == b.start for a, b in pairwise(splits))
    assert all(split.start in boundaries and split.sure_end == len(data) for split in splits)
