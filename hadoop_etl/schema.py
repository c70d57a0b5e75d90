"""Event schemas as warehouse columns.

One schema language for all payloads: Avro record schemas (§4). JSON topics use the same, given or inferred from a
sample. In the warehouse numbers are wide (long, double), so a field that grows from int to long keeps its column; a
field that is added becomes a column whose old rows are null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from hadoop_etl.columns import FILE_COLUMNS, MODERN_COLUMNS
from kafka2011.avro import Schema, SchemaError

OWN_COLUMNS = frozenset({"dt", "hr", "extra", "kerror", *FILE_COLUMNS.names, *MODERN_COLUMNS.names})
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


MAX_PRECISION = 38
"""Digits of a decimal column; a longer decimal is kept as text."""


def folded(name: str) -> str:
    """A name as Delta, Spark and DuckDB compare it: they take ``who`` and ``WHO`` for one column."""
    return name.casefold()


def column_names(*schemas: Schema) -> dict[str, str]:
    """The warehouse column of each field of these schemas, oldest first.

    A name that is taken, by the load itself or by an earlier field, in capitals or not, gets trailing underscores. Who
    came first keeps the name, so a column never changes its field.
    """
    taken, found = {folded(name) for name in OWN_COLUMNS}, dict[str, str]()
    for field in (f["name"] for schema in schemas for f in schema["fields"]):
        if field not in found:
            column = field
            while folded(column) in taken:
                column += "_"
            taken.add(folded(column))
            found[field] = column
    return found


def columns_of(schema: Schema, names: Mapping[str, str] | None = None) -> pa.Schema:
    """The warehouse columns of one schema; ``names`` if it is one of several of a topic."""
    names = column_names(schema) if names is None else names
    return pa.schema([pa.field(names[f["name"]], arrow_type(f["type"])) for f in schema["fields"]])


def arrow_type(kind: Any) -> pa.DataType:
    """The column type of an Avro type. A choice between several types becomes JSON text."""
    if isinstance(kind, list):
        rest = [part for part in kind if part != "null"]
        return arrow_type(rest[0]) if len(rest) == 1 and rest[0] != JSON_TEXT else pa.string()
    if isinstance(kind, str):
        return _PRIMITIVES.get(kind, pa.string())
    name = kind["type"]
    if name == "record":
        if not has_distinct_fields(kind):
            return pa.string()
        return pa.struct([pa.field(f["name"], arrow_type(f["type"])) for f in kind["fields"]])
    if name == "array":
        return pa.list_(arrow_type(kind["items"]))
    if name == "map":
        return pa.map_(pa.string(), arrow_type(kind["values"]))
    if name == "enum":
        return pa.string()
    if kind.get("logicalType") == "decimal":
        if kind["precision"] > MAX_PRECISION:
            return pa.string()
        return pa.decimal128(kind["precision"], kind.get("scale", 0))
    if name == "fixed":
        return pa.binary()
    logical = _LOGICAL.get((name, kind.get("logicalType", "")))
    return logical if logical is not None else arrow_type(name)


def has_distinct_fields(record: Schema) -> bool:
    """Tell whether every reader can tell the fields of a record apart; one that none can is kept as JSON text."""
    names = [folded(f["name"]) for f in record["fields"]]
    return bool(names) and len(set(names)) == len(names)


def is_simple(kind: Any) -> bool:
    """Tell whether a block of such values can be read at once; maps, wide choices and named references cannot."""
    if isinstance(kind, list):
        rest = [part for part in kind if part != "null"]
        return len(rest) == 1 and len(kind) <= 2 and not isinstance(rest[0], list) and is_simple(rest[0])
    if isinstance(kind, str):
        return kind in _PRIMITIVES and kind != "null"
    if kind["type"] == "record":
        return has_distinct_fields(kind) and all(is_simple(f["type"]) for f in kind["fields"])
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


def defaults_of(schema: Schema, names: Mapping[str, str]) -> dict[str, Any]:
    """What a reader puts where an older event lacks the field: the default, unless it is null."""
    return {names[f["name"]]: f["default"] for f in schema["fields"] if f.get("default") is not None}


JSON_TEXT = ["string", "bytes"]
"""A choice of types stands for a value kept as JSON text."""


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
