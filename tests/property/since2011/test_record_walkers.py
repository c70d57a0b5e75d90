"""The two walkers of records give the same records and the same errors, and those of the slow decoder (D12, D18)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from kafka2011.errors import InvalidMessage
from since2011.wire import pure_records, record_walk
from since2011.wire.record_batch import HEADER_SIZE, read_header
from since2011.wire.records import Record, decode_records, encode_records, encode_rows
from since2011.wire.records import Row as RecordRow

pytestmark = pytest.mark.skipif(record_walk.compiled is None, reason="since2011.wire._records was not compiled")


class Row(NamedTuple):
    """What is made of a record: something in front, something behind."""

    topic: str
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    epoch: int


contents = st.none() | st.binary(max_size=200)
records = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp=st.integers(-1, 2**62),
        key=contents,
        value=contents,
        headers=st.lists(st.tuples(st.text(max_size=10), contents), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=20,
)


def outcome(walker: object, body: bytes, count: int, base: int = 100, stamp: int = -1) -> object:
    """What a walker makes of ``body``: rows, or the sentence of its error."""
    try:
        return walker.walk_records(body, count, Row, ("t",), (7,), base, 1000, stamp)  # type: ignore[attr-defined]
    except InvalidMessage as error:
        return str(error)


@given(records, st.sampled_from([-1, 5]))
def test_both_read_what_was_written(given_records: list[Record], stamp: int) -> None:
    """Every field comes back, by both walkers and by the decoder that reads one record at a time."""
    numbered = [record._replace(offset=100 + n) for n, record in enumerate(given_records)]
    batch = encode_records(numbered, base_timestamp=1000, attributes=0)
    body = batch[HEADER_SIZE:]
    pure = outcome(pure_records, body, len(numbered), stamp=stamp)

    assert pure == outcome(record_walk.compiled, body, len(numbered), stamp=stamp)
    assert all(type(row) is Row for row in pure)  # type: ignore[attr-defined]
    slow = decode_records(batch, read_header(batch), lambda _, data: data)
    expected = [
        Row("t", r.offset, r.timestamp if stamp < 0 else stamp, r.key, r.value, tuple(r.headers), 7) for r in slow
    ]
    assert pure == expected


@given(records, st.data())
def test_both_refuse_the_same_damage_in_the_same_words(given_records: list[Record], data: st.DataObject) -> None:
    """Bytes changed, cut off or added, and wrong counts: the same rows or the same error, and never anything else."""
    body = bytearray(encode_records(given_records, base_offset=0, last_offset_delta=0)[HEADER_SIZE:])
    for _ in range(data.draw(st.integers(0, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    damaged = bytes(body[:cut]) + data.draw(st.binary(max_size=12))
    count = data.draw(st.sampled_from([len(given_records), len(given_records) + 1, 0, 2**31 - 1]))

    assert outcome(pure_records, damaged, count) == outcome(record_walk.compiled, damaged, count)


@given(st.binary(max_size=80), st.integers(0, 5), st.sampled_from([0, 2**63 - 1, -(2**63)]))
def test_both_make_the_same_of_noise(body: bytes, count: int, base: int) -> None:
    """Random bytes, and offsets at the edge of 64 bits."""
    assert outcome(pure_records, body, count, base) == outcome(record_walk.compiled, body, count, base)


def test_a_varint_of_more_than_64_bits_is_refused() -> None:
    """Both stop at the tenth byte, and at a tenth byte that says too much (control: nine bytes are read)."""
    for length in (b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x02"):
        found = {str(outcome(walker, length + b"\0" * 20, 1)) for walker in (pure_records, record_walk.compiled)}
        assert found == {"a varint at byte 0 does not end"}
    assert "bytes, 20 are there" in str(outcome(pure_records, b"\xfe" * 8 + b"\x7e" + b"\0" * 20, 1))


def test_only_kinds_of_tuples_are_made() -> None:
    """What the compiled walker fills must be a tuple: anything else is refused before it is touched."""
    with pytest.raises(TypeError):
        record_walk.compiled.walk_records(b"", 0, dict, (), (), 0, 0, -1)


fields = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.sampled_from([62, 63, 64, 8190, 8191, 8192]).map(lambda size: b"x" * size),
)
headers = st.lists(st.tuples(st.text(max_size=9), fields), max_size=3)
times = st.one_of(st.integers(0, 10), st.integers(0, 1 << 40), st.integers(-(2**62), 2**62))
rows = st.lists(st.tuples(times, fields, fields, headers), min_size=1, max_size=70)


@given(rows)
def test_both_write_the_same(rows: list[RecordRow]) -> None:
    """Both write the records of a batch as the plain encoder does, which decodes to what was given."""
    assert record_walk.compiled.lay_records(rows) == pure_records.lay_records(rows)
    plain = [Record(number, *row) for number, row in enumerate(rows)]
    assert encode_rows(rows, producer_id=5, producer_epoch=1, base_sequence=9) == encode_records(
        plain, base_offset=0, producer_id=5, producer_epoch=1, base_sequence=9
    )


@given(st.binary(max_size=40))
def test_murmur2(data: bytes) -> None:
    """Both hash as Kafka's clients do."""
    assert record_walk.compiled.murmur2(data) == pure_records.murmur2(data) == kafka_python_murmur2(data) & 0xFFFF_FFFF


def test_rows_that_are_none_are_refused() -> None:
    """What is no row is refused by name, also when its own code changes the rows meanwhile."""
    for row in (None, (), (1, None, None), [1, None, None, ()], ("now", None, None, ()), (1, "key", None, ()),
                (1, None, 7, ()), (1, None, None, None), (1, None, None, [("h",)]), (1, None, None, [["h", b""]]),
                (1, None, None, [(b"h", b"")]), (1, None, None, [("h", "text")])):  # fmt: skip
        with pytest.raises(TypeError):
            record_walk.compiled.lay_records([(1, None, None, ()), row])  # type: ignore[list-item]
    with pytest.raises(OverflowError):
        record_walk.compiled.lay_records([(2**63, None, None, ())])
    with pytest.raises(OverflowError):
        record_walk.compiled.lay_records([(-(2**62), None, None, ()), (2**63 - 1, None, None, ())])
    with pytest.raises(ValueError, match="without records"):
        record_walk.compiled.lay_records([])

    class Hostile(list):  # type: ignore[type-arg]
        def __iter__(self) -> Iterator[tuple[str, bytes]]:
            rows.clear()
            return iter([("h", b"")])

    rows: list[RecordRow] = [(1, None, b"first", Hostile()), (2, None, b"x" * 1000, ())]
    assert len(record_walk.compiled.lay_records(rows)[0]) > 1000 and rows == []
    with pytest.raises(TypeError):
        record_walk.compiled.murmur2("text")  # type: ignore[arg-type]
