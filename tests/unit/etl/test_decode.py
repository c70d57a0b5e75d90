"""JSON and Avro payloads to columns, and what happens to those that are neither."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hadoop_etl.decode import Decoded, Format, make_decoder
from hadoop_etl.formats import choose_format
from hadoop_etl.inference import infer
from kafka2011.avro import FileSchemaRegistry, InvalidEvent, SchemaError, UnknownSchema
from kafka2011.errors import ConfigError
from zk_registry.fake import FakeZooKeeper
from zk_registry.schemas import ZooKeeperSchemaRegistry

V1 = {
    "type": "record",
    "name": "Click",
    "fields": [{"name": "timestamp", "type": "long"}, {"name": "user", "type": "string"}, {"name": "n", "type": "int"}],
}
V2 = {**V1, "fields": [*V1["fields"], {"name": "country", "type": "string", "default": "??"}]}


def decode(form: Format, payloads: list[bytes]) -> Decoded:
    return make_decoder(form).decode(pa.array(payloads, pa.binary()))


def json_form(*events: Any) -> Format:
    return Format("json", {0: infer([json.dumps(event).encode() for event in events], "t")})


def test_json_becomes_typed_columns() -> None:
    """Fields of the schema are columns, nested ones too; order and number of rows stay."""
    event = {"timestamp": 5, "user": "u", "x": 0.5, "ok": True, "tags": ["a"], "geo": {"lat": 1.5}}
    found = decode(json_form(event), [json.dumps({**event, "timestamp": i}).encode() for i in range(100)])
    assert found.columns.column("timestamp").to_pylist() == list(range(100))
    assert found.columns.slice(0, 1).to_pylist() == [{**event, "timestamp": 0, "extra": None}]


@pytest.mark.parametrize(
    "bad", [b"", b"[1]", b"nonsense", b'{"timestamp": "x"}', b"{}{}", b'{"timestamp": 1.5}', b"\xff\xfe", b"{" * 5000]
)
def test_one_bad_json_payload_costs_only_itself(bad: bytes) -> None:
    """An undecodable message is dead with a reason; its neighbours are read (§4)."""
    good = [json.dumps({"timestamp": i}).encode() for i in range(10)]
    found = decode(json_form({"timestamp": 1}), [*good[:5], bad, *good[5:]])
    assert list(found.dead) == [5]
    assert found.dead[5]
    assert found.columns.column("timestamp").to_pylist() == list(range(10))
    assert found.kept.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]


def test_two_objects_in_one_payload_never_shift_the_others() -> None:
    """As many objects as payloads is not enough: each payload must be one object."""
    found = decode(json_form({"a": 1}), [b'{"a":1}\n{"a":2}', b"", b'{"a":3}'])
    assert sorted(found.dead) == [0, 1]
    assert found.columns.column("a").to_pylist() == [3]


def test_fields_the_schema_does_not_know_are_kept_as_text() -> None:
    """A new field is never lost: it waits in ``extra`` until the schema has it."""
    form = json_form({"a": 1, "g": {"x": 1}})
    found = decode(form, [b'{"a":1,"new":[1,2]}', b'{"a":2}', b'{"a":3,"g":{"x":1,"y":2}}'])
    extra = [None if text is None else json.loads(text) for text in found.columns.column("extra").to_pylist()]
    assert extra == [{"new": [1, 2]}, None, {"g": {"y": 2}}]


def test_a_line_break_inside_json_is_read() -> None:
    """Pretty-printed JSON is one object all the same."""
    found = decode(json_form({"a": 1}), [b'{"a":\n1}', b'{"a":2}\n'])
    assert found.columns.column("a").to_pylist() == [1, 2]


def test_avro_of_two_versions_in_one_batch(tmp_path: Path) -> None:
    """Old events get the new field's default, in the order they came (§4: the schema id travels with the message)."""
    registry = FileSchemaRegistry(tmp_path)
    one, two = registry.register("clicks", V1), registry.register("clicks", V2)
    payloads = [
        registry.encode(two if i % 3 else one, {"timestamp": i, "user": "u", "n": i, "country": "de"})
        for i in range(200)
    ]
    found = decode(Format("avro", {one: V1, two: V2}), payloads)
    assert found.columns.column("timestamp").to_pylist() == list(range(200))
    assert found.columns.column("country").to_pylist() == ["de" if i % 3 else "??" for i in range(200)]
    assert found.schema_id is not None
    assert found.schema_id.to_pylist() == [two if i % 3 else one for i in range(200)]


def test_bad_avro_never_shifts_its_neighbours(tmp_path: Path) -> None:
    """A body too short and one too long, side by side, are two dead rows and nothing else."""
    registry = FileSchemaRegistry(tmp_path)
    number = registry.register("clicks", V1)
    payloads = [registry.encode(number, {"timestamp": i, "user": "user", "n": i}) for i in range(10)]
    payloads[3], payloads[4] = payloads[3][:-1], payloads[4] + b"\0"
    payloads[6], payloads[7], payloads[8] = b"", b"\0\0\0\0\x63body", b"hello world"
    found = decode(Format("avro", {number: V1}), payloads)
    assert found.columns.column("timestamp").to_pylist() == [0, 1, 2, 5, 9]
    assert sorted(found.dead) == [3, 4, 6, 7, 8]
    assert "99 is not registered" in found.dead[7]


def test_avro_types_no_block_reader_knows(tmp_path: Path) -> None:
    """Maps, choices and decimals are read one by one, with the same result."""
    schema = {
        "type": "record",
        "name": "Wide",
        "fields": [
            {"name": "timestamp", "type": "long"},
            {"name": "counts", "type": {"type": "map", "values": "long"}},
            {"name": "either", "type": ["null", "long", "string"]},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        ],
    }
    registry = FileSchemaRegistry(tmp_path)
    number = registry.register("wide", schema)
    payload = registry.encode(number, {"timestamp": 1, "counts": {"a": 1}, "either": 7, "kind": "B"})
    found = decode(Format("avro", {number: schema}), [payload])
    assert not found.dead
    assert found.columns.to_pylist() == [{"timestamp": 1, "counts": [("a", 1)], "either": "7", "kind": "B"}]


def test_a_field_named_like_ours_gets_an_underscore(tmp_path: Path) -> None:
    """An event may have a field called ``value``; the column of that name is the load's."""
    found = decode(json_form({"value": 1}), [b'{"value": 7}'])
    assert found.columns.column("value_").to_pylist() == [7]


@pytest.fixture(params=["files", "zookeeper"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "files":
        return FileSchemaRegistry(tmp_path)
    session = FakeZooKeeper().session()
    session.start()
    return ZooKeeperSchemaRegistry(session)


def test_a_schema_keeps_its_id(registry: Any) -> None:
    """Registering again gives the same id; ids are never shared (§4)."""
    one, two = registry.register("clicks", V1), registry.register("clicks", V2)
    assert registry.register("clicks", V1) == one != two
    assert registry.ids("clicks") == [one, two]
    assert registry.schema(two) == V2
    assert registry.register("views", V1) not in (one, two)
    with pytest.raises(UnknownSchema):
        registry.schema(99)


def test_a_field_may_not_change_its_type(registry: Any) -> None:
    """Fields may be added; a new type under an old name is refused when it is registered."""
    registry.register("clicks", V1)
    with pytest.raises(SchemaError, match="'user'"):
        registry.register("clicks", {**V1, "fields": [{"name": "user", "type": "long"}]})
    registry.register("clicks", {**V1, "fields": [{"name": "n", "type": ["null", "long"], "default": None}]})


def test_encode_and_decode_are_inverse(registry: Any) -> None:
    """One byte 0, the id, the Avro body; a payload that is none of it is refused (§4)."""
    number = registry.register("clicks", V1)
    record = {"timestamp": 1, "user": "u", "n": 2}
    payload = registry.encode(number, record)
    assert payload[:5] == b"\0" + number.to_bytes(4, "big")
    assert registry.decode(payload) == record
    for bad in (payload[:-1], payload + b"\0", b"x", b""):
        with pytest.raises(InvalidEvent):
            registry.decode(bad)


def test_the_format_of_a_topic_is_told_remembered_or_guessed(tmp_path: Path) -> None:
    """What a topic was loaded as once, it stays, until someone says otherwise."""

    def choose(wanted: str, payloads: list[bytes], noted: Any = None) -> Format:
        return choose_format("t", wanted, {}, registry=None, noted=noted, sample=lambda: payloads)

    assert choose("auto", [b"\x01\x02"]).name == "raw"
    first = choose("auto", [b'{"a": 1}'])
    assert first.name == "json"
    later = choose("auto", [b'{"a": 0.5, "b": "x"}'], first.as_dict())
    assert [f["name"] for f in later.schemas[0]["fields"]] == ["a", "b"]
    assert later.schemas[0]["fields"][0]["type"] == ["null", "long"]
    with pytest.raises(ConfigError):
        choose("avro", [])
