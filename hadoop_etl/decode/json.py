"""JSON events: one object per payload, columns by the topic's schema.

The quick way reads the batch as lines. It counts only if every payload begins with ``{``, ends with ``}`` and holds no
line break, and as many rows come out as went in: then each payload is exactly one object. Fields the schema does not
know are kept as JSON text in the column ``extra``.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from hadoop_etl.decode import Decoded, byte_bounds, rows_to_table
from hadoop_etl.schema import column_name, columns_of, is_simple
from kafka2011.avro import Schema

EXTRA = "extra"


class JsonDecoder:
    """Reads JSON objects. Thread: one."""

    def __init__(self, schema: Schema) -> None:
        self.columns = columns_of(schema).append(pa.field(EXTRA, pa.string()))
        self._fields = [f["name"] for f in schema["fields"]]
        self._types = pa.schema(
            [pa.field(name, column.type) for name, column in zip(self._fields, columns_of(schema), strict=True)]
        )
        self._quick = all(is_simple(f["type"]) for f in schema["fields"])

    def decode(self, payloads: pa.Array) -> Decoded:
        """Read a batch at once if that is provably right, else payload by payload."""
        table = self._at_once(payloads) if self._quick and len(payloads) else None
        return self._one_by_one(payloads) if table is None else Decoded(np.arange(len(payloads)), table)

    def _at_once(self, payloads: pa.Array) -> pa.Table | None:
        raw, bounds = byte_bounds(payloads)
        if (np.diff(bounds) < 2).any():
            return None
        if (raw[bounds[:-1]] != ord("{")).any() or (raw[bounds[1:] - 1] != ord("}")).any():
            return None
        if (raw[bounds[0] : bounds[-1]] == ord("\n")).any():
            return None
        lines = pc.binary_join_element_wise(payloads, pa.scalar(b"\n", pa.binary()), pa.scalar(b"", pa.binary()))
        text = lines.buffers()[2]
        try:
            table = pyarrow.json.read_json(
                pa.BufferReader(text.slice(0, int(np.frombuffer(lines.buffers()[1], dtype=np.int32)[len(lines)]))),
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=max(len(text), 1)),
                parse_options=pyarrow.json.ParseOptions(explicit_schema=self._types, unexpected_field_behavior="infer"),
            )
        except (pa.ArrowException, ValueError):
            return None  # some payload is not what it should be; the slow way finds out which
        if table.num_rows != len(payloads) or any(table.field(f.name).type != f.type for f in self._types):
            return None
        if set(table.column_names) == set(self._fields):
            extra: pa.Array = pa.nulls(len(payloads), pa.string())
        else:
            extra = pa.array([self._extra(json.loads(payload)) for payload in payloads.to_pylist()], pa.string())
        known = [table.column(name) for name in self._fields]
        return pa.table([*known, extra], schema=self.columns)

    def _one_by_one(self, payloads: pa.Array) -> Decoded:
        dead: dict[int, str] = {}
        rows: list[dict[str, Any]] = []
        places: list[int] = []
        for place, payload in enumerate(payloads.to_pylist()):
            try:
                event = json.loads(payload)
            except (ValueError, RecursionError) as error:
                dead[place] = f"not JSON: {error}"
                continue
            if not isinstance(event, dict):
                dead[place] = f"not a JSON object but {type(event).__name__}"
                continue
            row = {column_name(name): event.get(name) for name in self._fields}
            rows.append({**row, EXTRA: self._extra(event)})
            places.append(place)
        table, bad = rows_to_table(rows, self.columns)
        dead |= {places[row]: reason for row, reason in bad.items()}
        return Decoded(np.array([p for p in places if p not in dead], dtype=np.int64), table, dead)

    def _extra(self, event: dict[str, Any]) -> str | None:
        unknown = _unknown(event, self._types)
        return json.dumps(unknown) if unknown else None


def _unknown(event: dict[str, Any], known: pa.Schema | pa.StructType) -> dict[str, Any]:
    """The parts of an event its schema has no place for, nested as they were."""
    types = {part.name: part.type for part in known}
    found: dict[str, Any] = {}
    for name, value in event.items():
        if name not in types:
            found[name] = value
        elif pa.types.is_struct(types[name]) and isinstance(value, dict):
            inner = _unknown(value, types[name])
            if inner:
                found[name] = inner
    return found
