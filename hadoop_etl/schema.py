"""Event schemas as warehouse columns.

One schema language for all payloads: Avro record schemas (§4). JSON topics use the same, given or inferred from a
sample. In the warehouse numbers are wide (long, double), so a field that grows from int to long keeps its column; a
field that is added becomes a column whose old rows are null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hadoop_etl.columns import FILE_COLUMNS
from kafka2011.avro import Schema, SchemaError

OWN_COLUMNS = frozenset({"dt", "hr", "extra", "kerror", *FILE_COLUMNS.names})
"""Columns the load itself writes; an event's field of that name gets a trailing underscore."""

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float64(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "null": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
}


def column_name(field: str) -> str:
    """The warehouse column of an event's field."""
    return field + "_" if field in OWN_COLUMNS else field


def columns_of(schema: Schema) -> pa.Schema:
    """The warehouse columns of one schema."""
    return pa.schema([pa.field(column_name(f["name"]), arrow_type(f["type"])) for f in schema["fields"]])


def arrow_type(kind: Any) -> pa.DataType:
    """The column type of an Avro type. A choice between several types becomes JSON text."""
    if isinstance(kind, list):
        rest = [part for part in kind if part != "null"]
        return arrow_type(rest[0]) if len(rest) == 1 and rest[0] != JSON_TEXT else pa.string()
    if isinstance(kind, str):
        return _PRIMITIVES.get(kind, pa.string())
    name = kind["type"]
    if name == "record":
        return pa.struct([pa.field(f["name"], arrow_type(f["type"])) for f in kind["fields"]])
    if name == "array":
        return pa.list_(arrow_type(kind["items"]))
    if name == "map":
        return pa.map_(pa.string(), arrow_type(kind["values"]))
    if name == "enum":
        return pa.string()
    if kind.get("logicalType") == "decimal":
        return pa.decimal128(kind["precision"], kind.get("scale", 0))
    if name == "fixed":
        return pa.binary()
    logical = _LOGICAL.get((name, kind.get("logicalType", "")))
    return logical if logical is not None else arrow_type(name)


def is_simple(kind: Any) -> bool:
    """Tell whether a block of such values can be read at once; maps, wide choices and named references cannot."""
    if isinstance(kind, list):
        rest = [part for part in kind if part != "null"]
        return len(rest) == 1 and len(kind) <= 2 and not isinstance(rest[0], list) and is_simple(rest[0])
    if isinstance(kind, str):
        return kind in _PRIMITIVES and kind != "null"
    if kind["type"] == "record":
        return all(is_simple(f["type"]) for f in kind["fields"])
    if kind["type"] == "array":
        return is_simple(kind["items"])
    return kind["type"] in ("enum", *_PRIMITIVES) and kind.get("logicalType") != "decimal"


def plain_type(kind: Any) -> Any:
    """The type as bytes are read by it: without defaults, and without logical types the warehouse does not know."""
    if isinstance(kind, list):
        return [plain_type(part) for part in kind]
    if not isinstance(kind, Mapping):
        return kind
    known = kind.get("logicalType") == "decimal" or (kind["type"], kind.get("logicalType")) in _LOGICAL
    result = {key: value for key, value in kind.items() if key != "logicalType" or known}
    for key in ("items", "values"):
        if key in result:
            result[key] = plain_type(result[key])
    if "fields" in result:
        result["fields"] = [{"name": f["name"], "type": plain_type(f["type"])} for f in result["fields"]]
    return result


def merge(schemas: Iterable[pa.Schema], topic: str) -> pa.Schema:
    """All columns of several versions, in order of first appearance; a column with two types is refused."""
    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        for field in schema:
            known = fields.setdefault(field.name, field)
            if not known.type.equals(field.type):
                raise SchemaError(
                    f"column {field.name!r} of {topic} is {known.type} and {field.type}; a field may be added, its "
                    "type may not change: use a new name, or load into another warehouse"
                )
    return pa.schema(list(fields.values()))


def defaults_of(schema: Schema) -> dict[str, Any]:
    """What a reader puts where an older event lacks the field: the default, unless it is null."""
    return {
        column_name(f["name"]): f["default"] for f in schema["fields"] if f.get("default") is not None
    }


JSON_TEXT = ["string", "bytes"]
"""A choice of types stands for a value kept as JSON text."""


def infer(payloads: Sequence[bytes], topic: str) -> Schema:
    """An event schema for JSON payloads without one: the fields seen in a sample, all of them nullable."""
    whole: Any = "null"
    for payload in payloads:
        try:
            event = json.loads(payload)
        except ValueError:
            continue  # an undecodable message has nothing to teach; the load will quarantine it
        if isinstance(event, dict):
            whole = _unite(whole, _type_of(event))
    fields = whole["fields"] if isinstance(whole, dict) else []
    return {"type": "record", "name": "Event", "doc": f"inferred from {topic}", "fields": fields}


def _type_of(value: Any) -> Any:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "long"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict) and value:
        fields = [{"name": n, "type": ["null", _type_of(v)], "default": None} for n, v in value.items()]
        return {"type": "record", "name": "Record", "fields": fields}
    items: Any = "null"
    for item in value:
        items = _unite(items, _type_of(item))
    return {"type": "array", "items": items} if value else JSON_TEXT


def _unite(one: Any, other: Any) -> Any:
    """The type that holds both; JSON text where there is none."""
    if one == other or other == "null":
        return one
    if one == "null":
        return other
    if {str(one), str(other)} == {"long", "double"}:
        return "double"
    if isinstance(one, dict) and isinstance(other, dict) and one["type"] == other["type"]:
        if one["type"] == "array":
            return {"type": "array", "items": _unite(one["items"], other["items"])}
        fields = {f["name"]: f["type"][1] for f in one["fields"]}
        for f in other["fields"]:
            fields[f["name"]] = _unite(fields.get(f["name"], "null"), f["type"][1])
        return {**one, "fields": [{"name": n, "type": ["null", t], "default": None} for n, t in fields.items()]}
    return JSON_TEXT


AUDIT_SCHEMA: Schema = {
    "type": "record",
    "name": "Audit",
    "doc": "How many messages a producer sent for a topic in a window of time (§4).",
    "fields": [
        {"name": "producer", "type": "string"},
        {"name": "topic", "type": "string"},
        {"name": "window_start_ms", "type": "long"},
        {"name": "window_ms", "type": "long"},
        {"name": "count", "type": "long"},
        {"name": "sequence", "type": "long"},
    ],
}
