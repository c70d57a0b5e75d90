"""Payloads made to hurt: each costs only itself (issue 20 A1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hadoop_etl.audit import MOST_WIDTHS, audit
from hadoop_etl.decode import Format, make_decoder
from hadoop_etl.decode.bounds import MAX_DEPTH, MAX_VALUES, is_beyond_json
from hadoop_etl.entries import read_entries
from hadoop_etl.inference import MAX_COLUMNS, infer
from hadoop_etl.schema import column_names, columns_of
from hadoop_etl.wrappers import MAX_OPENED
from kafka2011.avro_walk import AvroWalk
from kafka2011.wire import encode_set
from kafka2011.wire.compression import compress
from kafka2011.wire.message import Codec, Message, encode_message
from tests.unit.etl.odd_data import OddWarehouse
from tests.unit.etl.test_decode import decode, json_form
from tests.unit.etl.test_entries import rows_of

DEEP = b'{"a":' * 1200 + b"1" + b"}" * 1200


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(
    "poison",
    [
        pytest.param(DEEP, id="1,200 objects"),
        pytest.param(b'{"x":' + nested(30_000) + b"}", id="60 KB of brackets"),
        pytest.param(b'{"n":' + b"[" * 60_000, id="never closed"),
        pytest.param(b'{"x": "' + b"\\" * 3 + b'"' + nested(5000), id="escapes before it"),
        pytest.param(b'{"x":[' + b"1," * (MAX_VALUES + 5) + b"1]}", id="many values"),
        pytest.param(("[" * 5000).encode("utf-16"), id="two bytes a letter"),
        pytest.param(b'{"n": "\xff\xfe"}', id="not UTF-8"),
        pytest.param(b'{"n": 1, "s": "\\ud800"}', id="half a surrogate pair in a column"),
        pytest.param(b'{"n": ' + b"9" * 5000 + b"}", id="5,000 digits"),
        pytest.param(b'{"n": 1' + b"0" * 30 + b"}", id="beyond 64 bits"),
        pytest.param(b'{"q": NaN}', id="NaN in text"),
        pytest.param(b'{"n": Infinity}', id="infinity in a column of integers"),
    ],
)
def test_no_payload_harms_its_neighbours(poison: bytes) -> None:
    """Whatever is inside, it is one dead row with a short reason; the others are read (issue 20 A1)."""
    good = [json.dumps({"n": i, "s": "x"}).encode() for i in range(6)]
    found = decode(json_form({"n": 1, "s": "x"}), [*good[:3], poison, *good[3:]])
    assert list(found.dead) == [3]
    assert 0 < len(found.dead[3]) < 400
    assert found.columns.column("n").to_pylist() == list(range(6))
    found.columns.validate(full=True)


def test_brackets_inside_text_are_only_text() -> None:
    """The limit is on nesting, not on what people write: code, emoticons, prose with many commas."""
    prose = json.dumps({"s": '[{"' * 5000 + "\\" + "," * (MAX_VALUES + 10)}).encode()
    assert not is_beyond_json(prose)
    assert not is_beyond_json(b'{"a":' + nested(MAX_DEPTH - 1) + b"}")
    assert is_beyond_json(b'{"a":' + nested(MAX_DEPTH) + b"}")
    assert not decode(json_form({"s": "x"}), [prose]).dead


def test_a_sample_of_poison_teaches_nothing() -> None:
    """A new topic whose first message is 1,200 brackets still gets the columns of the others (issue 20 A1a)."""
    schema = infer([DEEP, nested(1200), b"[" * 60_000, b"\xff", b'{"n": 1}'], "t")
    assert [f["name"] for f in schema["fields"]] == ["n"]


@pytest.mark.parametrize(
    ("event", "columns"),
    [
        ({"Id": 1, "id": 2}, ["Id", "id_"]),
        ({"TS": 1, "value": 2, "value_": 3}, ["TS_", "value_", "value__"]),
        ({"\ud800": 1, "": 2, "a\nb": 3, "x" * 300: 4, "n": 5}, ["n"]),
    ],
)
def test_columns_are_named_so_that_every_reader_can_tell_them_apart(event: Any, columns: list[str]) -> None:
    """Delta, Spark and DuckDB compare names without case; what cannot be a name stays in ``extra`` (issue 20 A1c)."""
    form = json_form(event)
    assert list(form.column_names().values()) == columns
    found = decode(form, [json.dumps(event).encode()])
    assert not found.dead
    (row,) = found.columns.to_pylist()
    extra = json.loads(row.pop("extra") or "{}")
    assert sorted([*row.values(), *extra.values()]) == sorted(event.values())


def test_the_second_of_two_names_waits_in_extra_until_it_is_a_column() -> None:
    """``{"WHO": 1}`` into a table with a column ``who`` is read; the older field keeps its name (issue 20 A1c)."""
    found = decode(json_form({"who": "x"}), [b'{"WHO": 1}', b'{"who": "y"}'])
    assert found.columns.to_pylist() == [{"who": None, "extra": '{"WHO": 1}'}, {"who": "y", "extra": None}]
    assert column_names({"fields": [{"name": "who"}, {"name": "WHO"}]}) == {"who": "who", "WHO": "WHO_"}


def test_records_whose_fields_differ_only_in_case_are_text() -> None:
    """No reader can name both members; the whole is kept."""
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}, {"name": "A", "type": "long"}]}
    assert columns_of({"fields": [{"name": "r", "type": record}]}).field("r").type == pa.string()


def test_a_flood_of_names_leaves_room_for_the_usual_ones() -> None:
    """Thousands of different keys become neither thousands of columns nor hide the fields every event has."""
    flood = [json.dumps({f"k{i}-{j}": 1 for j in range(50)} | {"timestamp": i}).encode() for i in range(100)]
    schema = infer(flood, "t")
    names = [f["name"] for f in schema["fields"]]
    assert len(names) == MAX_COLUMNS
    assert "timestamp" in names
    found = decode(Format("json", {0: schema}), flood)
    assert not found.dead


def test_an_object_with_data_for_keys_is_text() -> None:
    """Hundreds of members are a dictionary; deep nesting is kept whole as text."""
    payload = json.dumps({"users": {f"u{i}": i for i in range(500)}, "deep": json.loads(nested(40))}).encode()
    form = Format("json", {0: infer([payload], "t")})
    found = decode(form, [payload])
    assert json.loads(found.columns.column("users")[0].as_py())["u7"] == 7
    assert str(found.columns.schema.field("deep").type).count("list") <= 16


def test_one_odd_event_never_chooses_a_type() -> None:
    """499 integers and one text are a column of integers; an even mixture is text (issue 21 point 2)."""

    def kind(*values: Any) -> Any:
        return infer([json.dumps({"x": value}).encode() for value in values], "t")["fields"][0]["type"][1]

    assert kind(*range(499), "n/a") == "long"
    assert kind("n/a", *range(20)) == "long"
    assert kind(1, 1, "x") == "long"
    assert kind(1, 0.5, 2) == "double"
    assert kind("a", "b", 1, 2) == ["string", "bytes"]
    assert kind([], [1], {}) == {"type": "array", "items": "long"}


NOTHING = {"type": "record", "name": "Nothing", "fields": []}
BOMBS = {
    "null": [{"name": "s", "type": {"type": "array", "items": "null"}}],
    "empty record": [{"name": "s", "type": {"type": "array", "items": NOTHING}}],
    "itself": [{"name": "s", "type": {"type": "array", "items": "Node"}}, {"name": "x", "type": ["null", "Node"]}],
}
CLAIM = b"\x80\x80\x80\x80\x80\x80\x40"
"""2**40 items."""


@pytest.mark.parametrize("name", list(BOMBS))
def test_few_bytes_of_avro_cannot_claim_much(name: str) -> None:
    """An array of nothing with 2**40 items and a list nested 200,000 deep are dead rows, at once (issue 20 A1)."""
    schema = {"type": "record", "name": "Node", "fields": BOMBS[name]}
    head = b"\0\0\0\0\x01"
    found = make_decoder(Format("avro", {1: schema})).decode(
        pa.array([head + CLAIM, head + b"\x02" * 200_000, head + b"\x00\x00"], pa.binary())
    )
    assert {0, 1} <= set(found.dead)


LEAST = b"\xff" * 9 + b"\x01"
"""-2**63: in 64 bits the opposite of it is itself."""
TWO_READINGS = {
    "a count without an opposite": (LEAST + b"\x00\x00", [{"name": "a", "type": {"type": "array", "items": "long"}}]),
    "a number of eleven bytes": (b"\x80" * 10 + b"\x00", [{"name": "a", "type": "long"}]),
    "a number of 65 bits": (
        b"\x80" * 9 + b"\x02" + b"\x00" * 2,
        [{"name": "a", "type": {"type": "array", "items": "long"}}],
    ),
}


@pytest.mark.parametrize("name", list(TWO_READINGS))
def test_a_number_read_in_two_ways_vouches_for_nothing(name: str) -> None:
    """What walk and reader would cut differently is dead before the reader is asked for 2**40 items (issue 20 A2)."""
    begin, fields = TWO_READINGS[name]
    nothing = {"name": "nothing", "type": {"type": "array", "items": "null"}}
    schema = {"type": "record", "name": "R", "fields": [*fields, {"name": "s", "type": "string"}, nothing]}
    body = begin + b"\x00" + CLAIM + b"\x00"
    assert AvroWalk(schema).fault(body) is not None
    decoder = make_decoder(Format("avro", {1: schema}))
    found = decoder.decode(pa.array([b"\0\0\0\0\x01" + body], pa.binary()))
    assert list(found.dead) == [0]


def test_long_decimals_are_text() -> None:
    """A decimal of sixty digits has no column type; that is no reason to fail."""
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}
    schema = {"type": "record", "name": "R", "fields": [{"name": "d", "type": kind}]}
    decoder = make_decoder(Format("avro", {1: schema}))
    found = decoder.decode(pa.array([b"\0\0\0\0\x01\x04\x01\x00", b"\0\0\0\0\x01"], pa.binary()))
    assert found.columns.column("d").to_pylist() == ['"2.56"']
    assert list(found.dead) == [1]


def test_wrappers_in_wrappers_are_opened_so_far() -> None:
    """Five wrappers around each other are one dead row, not a stack without end."""
    data = encode_set([b"x"])
    for _ in range(5):
        data = encode_message(Message(compress(Codec.GZIP, data), attributes=Codec.GZIP))
    entries = read_entries(data, 0, at_end=True)
    assert not rows_of(entries)
    (dead,) = entries.dead
    assert "nested deeper" in dead.reason


def test_a_chunk_of_bombs_is_read_in_pieces() -> None:
    """Wrappers that inflate a thousandfold end a chunk early: the next one goes on exactly there."""
    bomb = encode_set([b"\0" * 7_000_000], codec=Codec.GZIP)
    data = encode_set([b"first"]) + bomb * 12 + encode_set([b"last"])
    assert len(data) < MAX_OPENED // 100
    position, seen, rounds = 0, 0, 0
    while position < len(data):
        entries = read_entries(data[position:], position, at_end=True)
        assert not entries.dead
        assert sum(rows.payload.nbytes for rows in entries.rows) < MAX_OPENED + 10_000_000
        seen += sum(len(rows) for rows in entries.rows)
        position, rounds = position + entries.size, rounds + 1
    assert (seen, rounds) == (14, 2)


def test_a_sealed_wrapper_is_one_dead_row() -> None:
    """A wrapper a worker died of is kept closed, with its bytes."""
    wrapper = encode_set([b"x", b"y"], codec=Codec.SNAPPY)
    entries = read_entries(wrapper + encode_set([b"z"]), 0, at_end=True, sealed=(0,))
    assert [payload for *_, payload in rows_of(entries)] == [b"z"]
    assert [(dead.offset, dead.next_offset) for dead in entries.dead] == [(0, len(wrapper))]


def test_reports_that_make_no_sense_cost_only_themselves(tmp_path: Path) -> None:
    """Whoever may publish may write to ``audit``: what no producer would say stops no audit (issue 20 A1)."""
    good = {"producer": "web-1", "topic": "clicks", "window_start_ms": 1_307_840_000_000, "window_ms": 10_000}
    good |= {"count": 2, "sequence": 1}
    bad: list[dict[str, Any]] = [
        *({"topic": name} for name in ("../../x", "", "_own", "x__dead", None, "a" * 300)),
        *({"window_ms": width} for width in (0, -1, None, 2**62, 3)),
        *({"count": count} for count in (None, -1, 2**60)),
        {"window_start_ms": 1_307_840_000_001},
    ]
    flood = [{"producer": "flood", "window_ms": 1000 * width, "window_start_ms": 0} for width in range(1, 500)]
    reports = [good, *({**good, "producer": "x", "sequence": i, **event} for i, event in enumerate([*bad, *flood]))]
    odd = OddWarehouse(tmp_path, "audit", "clicks")
    odd.send("audit", [json.dumps(report).encode() for report in reports])
    odd.send("clicks", [b'{"timestamp": 1307840000000}', b'{"timestamp": 1307840009999}'])
    odd.load()
    windows = audit(odd.warehouse, now_ms=1_307_850_000_000)
    judged = {w.window_ms: w.verdict for w in windows if w.topic == "clicks" and w.start_ms == 1_307_840_000_000}
    assert judged[10_000] == "complete"
    assert len({w.window_ms for w in windows if w.topic == "clicks"}) == MOST_WIDTHS
    (left_out,) = [w for w in windows if w.topic == "audit"]
    assert left_out.why.startswith(f"{len(bad) + len(flood) - MOST_WIDTHS} reports make no sense")
