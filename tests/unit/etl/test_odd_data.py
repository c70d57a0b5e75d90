"""Data a load has never seen: every row is compared with the message it came from (issue 21, must show 5)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka2011.avro import FileSchemaRegistry, Schema, SchemaError
from kafka2011.wire.message import Codec
from tests.unit.etl.odd_data import OddWarehouse

TIME = {"timestamp": 1_307_847_600_000}
TOPIC = "odd"


def events(*found: dict[str, Any]) -> list[bytes]:
    return [json.dumps({**TIME, **event}).encode() for event in found]


def values(*found: Any) -> list[bytes]:
    return events(*({"x": value} for value in found))


def texts(*found: bytes) -> list[bytes]:
    return [b'{"timestamp": 1307847600000, "x": %s}' % text for text in found]


ENCODINGS = ("utf-8-sig", "utf-16", "utf-32-le", "latin-1")
NUMBERS = [0.5 + i for i in range(50)]
STRANGE = [
    *("a.b", "a b", '"', "`", "'", "", " ", "a\nb", "\t", "a/b", "a=b", "%41", "a,b", ";", "{}", "(", "-1", "a\\b"),
    *("größe", "名前", "😀", "é", "e\u0301", "ﬀ", "ff", "ß", "ss", "İ", "i", "who", "WHO", "Who", "\u200b", "x" * 300),
    *("ts", "dt", "DT", "hr", "kbroker", "koffset", "kidx", "knext", "value", "value_", "extra", "kerror", "schema_id"),
]

CASES: dict[str, tuple[int, Sequence[Sequence[bytes]]]] = {
    # name: how many dead rows there are, and the payloads of each load
    "types that change from load to load": (23, [values(*range(20)), values(*("a" * 20)), values([1], {}, [])]),
    "types that differ in one load": (0, [values(1, "a", 1.5, None, True, [1], {"a": 1}, [], {})]),
    "numbers of 64 bits without a sign": (0, [values(*(Random(i).randrange(2**64) for i in range(50)))]),
    "one number too large for its column": (2, [values(*range(50), 2**64, -(2**63) - 1)]),
    "whole numbers that no double holds": (2, [values(*NUMBERS, 2**53, 2**53 + 1, 10**400)]),
    "the same inside a list of records": (1, [values(*([{"y": n}] for n in NUMBERS), [{"y": 2**53 + 1}])]),
    "numbers in every spelling": (0, [texts(b"0.1", b"1.10", b"-0.0", b"1E-7", b"1e+3", b"123456789.123456789")]),
    "fractions among whole numbers, later": (1, [values(*range(50)), values(1.5, 2.0)]),
    "true and false among numbers": (1, [values(*range(50), True)]),
    "lists in lists": (0, [values([[1, None], [], [2]], [[3]], [], [[]])]),
    "lists of anything": (0, [values([1], [[1]], [None], [1, "a"], [{"a": 1}, {"b": 2}])]),
    "a list of records that gain a member": (0, [values([{"a": 1}], [{"a": 2}]), values([{"a": 1, "z": {}}])]),
    "a record that gains a member": (0, [values({"a": 1}, {"a": 2}), values({"a": 1, "b": {"c": [1]}})]),
    "empty records, then full ones": (0, [values({}, {}), values({"a": 1}), [b"{}"]]),
    "members that differ in case": (0, [values({"a": 1, "A": 2}, {"a": 3})]),
    "nothing but null": (0, [[b"{}", b'{"x": null}'], values(1), values("a")]),
    "names of every kind": (0, [events({name: i for i, name in enumerate(STRANGE)}, {})]),
    "a name twice": (0, [[*values(1, 2), *[b'{"timestamp": 1307847600000, "x": 1, "x": 2}'] * 2]]),
    "fields that come and go": (0, [events({"a": 1, "b": 2}), events({"b": 2}), events({"c": 1})]),
    "ten thousand names": (0, [events(*({f"k{i * 10 + j}": j for j in range(10)} for i in range(1000)))]),
    "what is no object": (8, [values(*range(30)), [b"null", b"true", b"1", b'"x"', b"[]", b"", b" ", b"x"]]),
    "two objects in one message": (2, [values(*range(30)), [b'{"x": 1}{"x": 2}', b'{"x": 1}\n{"x": 2}']]),
    "lines and blanks": (0, [[b'{"timestamp": 1307847600000,\n "x": 1}\n', b'  {"x": 2}\t'], values(3)]),
    "almost JSON": (4, [values(*range(30)), [b"{'x': 1}", b'{"x": 1,}', b'{"x": 01}', b'{"x": "\x00"}']]),
    "text in other encodings": (1, [[b"{}", *('{"x": "é"}'.encode(name) for name in ENCODINGS)]]),
    "packed payloads": (0, [[gzip.compress(payload, mtime=0) for payload in values(*range(20))]]),
    "empty payloads": (0, [[b""] * 10]),
    "megabytes": (0, [events(*({"x": Random(i).randbytes(500_000).hex(), "i": i} for i in range(3)))]),
    "half a letter": (1, [values(*"abcdefghij"), texts(b'"\\ud800"', b'"\\u0000"')]),
}


@pytest.mark.parametrize("name", CASES)
def test_every_row_is_its_message(tmp_path: Path, name: str) -> None:
    """Each message is a row that holds all of it, or a dead row; no other message pays (docs/etl.md)."""
    dead, loads = CASES[name]
    odd = OddWarehouse(tmp_path, TOPIC)
    for number, payloads in enumerate(loads):
        odd.night(TOPIC, payloads, Codec.GZIP if number % 2 else Codec.NONE)
    assert len(odd.dead(TOPIC)) == dead, odd.dead(TOPIC)


TIMES: dict[Any, str | None] = {
    1_307_847_600: "2011-06-12T03:00:00.000",
    1_307_847_600.5: "2011-06-12T03:00:00.500",
    1_307_847_600_123: "2011-06-12T03:00:00.123",
    1_307_847_600_123_456: "2011-06-12T03:00:00.123",
    1_307_847_600_123_456_789: "2011-06-12T03:00:00.123",
    "1307847600.25": "2011-06-12T03:00:00.250",
    -1: "1969-12-31T23:59:59.000",
    "2011-06-12T03:00:00Z": "2011-06-12T03:00:00.000",
    "2011-06-12t03:00:00.123456789z": "2011-06-12T03:00:00.123",
    "2011-06-12T03:00:00+05:45": "2011-06-11T21:15:00.000",
    "2011-06-12 03:00": "2011-06-12T03:00:00.000",
    "20110612T030000Z": "2011-06-12T03:00:00.000",
    "2011-06-12": "2011-06-12T00:00:00.000",
    "2011-06-12T24:00:00Z": "2011-06-13T00:00:00.000",
    "2008-12-31T23:59:60Z": "2009-01-01T00:00:00.000",
    "2012-02-29T12:00:00Z": "2012-02-29T12:00:00.000",
    "9999-12-31T23:59:59.999Z": "9999-12-31T23:59:59.999",
    "0001-01-01T00:00:00Z": "0001-01-01T00:00:00.000",
    None: None,
}
NO_TIMES = ("2011-02-29T00:00Z", "0000-01-01T00:00Z", "now", "12/06/2011", "", 1e300, "2011-06-12T24:00:01Z", "١٢٣")
FAR = ("9999-12-31T23:59:59.999Z",)
"""As milliseconds in a column of numbers it would look like microseconds, so there it is no time."""


@pytest.mark.parametrize("beside", [[], [{"timestamp": 1_307_847_600_000}] * 400], ids=["alone", "among milliseconds"])
def test_times_in_every_form(tmp_path: Path, beside: list[dict[str, Any]]) -> None:
    """Whatever producers write as a time is read as it was meant, or is one dead row (docs/etl.md)."""
    odd = OddWarehouse(tmp_path, TOPIC)
    read_ones = {moment: read for moment, read in TIMES.items() if not beside or moment not in FAR}
    unread = [*NO_TIMES, *(FAR if beside else ())]
    odd_ones = [{"timestamp": moment, "i": i} for i, moment in enumerate([*read_ones, *unread])]
    odd.night(TOPIC, [json.dumps(event).encode() for event in (*beside, *odd_ones)])
    found = {row["i"]: row["ts"] for row in odd.rows(TOPIC).values() if row["i"] is not None}
    read = {i: ts and f"{ts.replace(tzinfo=None).isoformat(timespec='milliseconds')}" for i, ts in found.items()}
    assert read == dict(enumerate(read_ones.values()))
    assert len(odd.dead(TOPIC)) == len(unread)


def test_days_follow_the_clocks_of_a_zone(tmp_path: Path) -> None:
    """Times without a zone are of the configured one, also in the hours that clocks skip or repeat (docs/etl.md)."""
    odd = OddWarehouse(tmp_path, TOPIC, times={"time_zone": "Europe/Berlin"})
    nights = [f"2011-{day}T{hour:02}:30:00" for day in ("03-27", "10-30") for hour in (0, 1, 2, 3, 23)]
    odd.night(TOPIC, [json.dumps({"timestamp": text, "day": text[:10]}).encode() for text in nights])
    assert all(row["dt"].isoformat() == row["day"] for row in odd.rows(TOPIC).values())
    utc = {row["timestamp"]: row["ts"].strftime("%d %H:%M") for row in odd.rows(TOPIC).values()}
    assert (utc["2011-03-27T01:30:00"], utc["2011-03-27T03:30:00"]) == ("27 00:30", "27 01:30")
    assert (utc["2011-10-30T01:30:00"], utc["2011-10-30T03:30:00"]) == ("29 23:30", "30 02:30")


def record(*fields: dict[str, Any]) -> Schema:
    return {"type": "record", "name": "Event", "fields": [{"name": "timestamp", "type": "long"}, *fields]}


def test_avro_schemas_that_evolve(tmp_path: Path) -> None:
    """Fields come, go, widen and become optional; rows of every version are as they were written (docs/etl.md)."""
    registry = FileSchemaRegistry(tmp_path / "schemas")
    odd = OddWarehouse(tmp_path / "warehouse", TOPIC, schemas=registry)
    money = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4}
    lists = {"type": "map", "values": {"type": "array", "items": ["null", "string"]}}
    maybe, listed = {"name": "a", "type": ["null", "long"]}, {"name": "l", "type": lists}
    versions: list[tuple[Schema, dict[str, Any]]] = [
        (record({"name": "a", "type": "int"}), {"a": 1}),
        (record({"name": "a", "type": "long"}, {"name": "A", "type": "string"}), {"a": 2**40, "A": "x"}),
        (record({"name": "A", "type": "string"}, {"name": "m", "type": money}), {"A": "y", "m": Decimal("1.2345")}),
        (record(maybe, listed), {"a": None, "l": {"": ["é", None]}}),
    ]
    for schema, event in versions:
        number = registry.register(TOPIC, schema)
        odd.night(TOPIC, [registry.encode(number, {**TIME, **event})] * 3)
    rows = [row for _, row in sorted(odd.rows(TOPIC).items())]
    assert [row["a"] for row in rows[::3]] == [1, 2**40, None, None]
    assert [row["A_"] for row in rows[::3]] == [None, "x", "y", None]
    assert [row["m"] for row in rows[::3]] == [None, None, Decimal("1.2345"), None]
    assert rows[-1]["l"] == {"": ["é", None]}
    with pytest.raises(SchemaError, match="new name"):
        registry.register(TOPIC, record({"name": "a", "type": "string"}))


def test_topics_whose_names_nearly_collide(tmp_path: Path) -> None:
    """Names that differ by one sign or by case are different tables; two that cannot be tables fail alone."""
    names = ("a-b", "a.b", "a_b", "A-B")
    odd = OddWarehouse(tmp_path, *names, "x__dead", "_own")
    for topic in odd.broker.logs:
        odd.send(topic, events({"topic": topic}))
    report = odd.load()
    assert report["exit_code"] == 5
    assert sorted(t["topic"] for t in report["topics"] if t["error"]) == ["_own", "x__dead"]
    for topic in names:
        odd.check(topic)
        assert [row["topic"] for row in odd.rows(topic).values()] == [topic]
