"""Avro events: a schema id, then the body (§4).

The quick way lays the bodies of one schema end to end as a single block of an Avro file and reads that. A block hides
where rows begin: one short body would shift its neighbours. So a mark follows each body, a number no body can guess,
and is read as a last field: if every mark comes back in its place, every row was cut where its payload was.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from fastavro import parse_schema

from hadoop_etl.decode import Decoded, Format, byte_bounds
from hadoop_etl.decode.bounds import too_large
from hadoop_etl.decode.fitting import rows_to_table, shown
from hadoop_etl.schema import columns_of, defaults_of, is_simple, merge, plain_type
from kafka2011.avro import FIRST_BYTE, HEAD, InvalidEvent, Schema, decode_body
from kafka2011.avro_walk import AvroWalk

_MARK = "kafka2011_mark"
_SYNC = bytes(range(16))
_BIG_ENDIAN = np.array([1 << 24, 1 << 16, 1 << 8, 1], dtype=np.int64)


class AvroDecoder:
    """Reads events of all schemas of a topic. Thread: one."""

    def __init__(self, form: Format) -> None:
        names, schemas = form.column_names(), form.schemas
        self._schemas = {number: _Version(number, schema, names) for number, schema in schemas.items()}
        self.columns = merge([version.columns for version in self._schemas.values()], "the topic")
        newest = schemas[max(schemas)] if schemas else {"fields": []}
        self._defaults = defaults_of(newest, names)

    def decode(self, payloads: pa.Array) -> Decoded:
        """Read a batch, schema by schema; rows come back in the order of the payloads."""
        raw, bounds = byte_bounds(payloads)
        has_head = np.diff(bounds) >= HEAD.size
        has_head[has_head] = raw[bounds[:-1][has_head]] == FIRST_BYTE
        dead = {int(i): "no schema id in front: not an Avro event" for i in np.flatnonzero(~has_head)}
        beyond = too_large(bounds)
        has_head[list(beyond)] = False
        dead |= beyond
        ids = np.full(len(payloads), -1, dtype=np.int64)
        ids[has_head] = raw[bounds[:-1][has_head][:, None] + np.arange(1, HEAD.size)] @ _BIG_ENDIAN
        kept, tables = [], []
        for number in np.unique(ids[has_head]):
            places = np.flatnonzero(ids == number)
            version = self._schemas.get(int(number))
            if version is None:
                dead |= {int(place): f"schema {number} is not registered for this topic" for place in places}
                continue
            bodies = pc.binary_slice(payloads.take(pa.array(places)), HEAD.size, stop=len(raw) + HEAD.size)
            table, bad = version.read(bodies)
            dead |= {int(places[row]): reason for row, reason in bad.items()}
            kept.append(np.delete(places, list(bad)))
            tables.append(self._complete(table))
        if not tables:
            return Decoded(np.zeros(0, dtype=np.int64), self.columns.empty_table(), dead, pa.array([], pa.int32()))
        order = np.argsort(np.concatenate(kept), kind="stable")
        table = pa.concat_tables(tables)
        if len(tables) > 1:
            table = table.take(pa.array(order))
        places = np.concatenate(kept)[order]
        return Decoded(places, table, dead, pa.array(ids[places], pa.int32()))

    def _complete(self, table: pa.Table) -> pa.Table:
        """Add the columns this version lacks: the newest schema's default, or null."""
        columns = []
        for column in self.columns:
            if column.name in table.column_names:
                columns.append(table.column(column.name))
            elif column.name in self._defaults and pa.types.is_primitive(column.type) | pa.types.is_string(column.type):
                columns.append(pa.repeat(pa.scalar(self._defaults[column.name], column.type), table.num_rows))
            else:
                columns.append(pa.nulls(table.num_rows, column.type))
        return pa.table(columns, schema=self.columns)


class _Version:
    """One schema: its columns and both ways to read bodies of it."""

    def __init__(self, number: int, schema: Schema, names: Mapping[str, str]) -> None:
        self.number = number
        self._names = names
        self.columns = columns_of(schema, names)
        self._walk = AvroWalk(schema)
        plain = plain_type(dict(schema))
        self._parsed = parse_schema(plain)
        self._quick = not self._walk.is_needed and all(is_simple(f["type"]) for f in plain["fields"])
        marked = {**plain, "fields": [*plain["fields"], {"name": _MARK, "type": "double"}]}
        self._header = _container_header(marked)

    def read(self, bodies: pa.Array) -> tuple[pa.Table, dict[int, str]]:
        table = self._at_once(bodies) if self._quick else None
        return self._one_by_one(bodies) if table is None else (table, {})

    def _at_once(self, bodies: pa.Array) -> pa.Table | None:
        count = len(bodies)
        marks = int.from_bytes(os.urandom(6), "big") + np.arange(count, dtype="<f8")
        ends = pa.py_buffer(np.arange(count + 1, dtype=np.int32) * 8)
        tails = pa.Array.from_buffers(pa.binary(), count, [None, ends, pa.py_buffer(marks)])
        block = pc.binary_join_element_wise(bodies, tails, pa.scalar(b"", pa.binary()))
        raw, bounds = byte_bounds(block)
        content = raw[bounds[0] : bounds[-1]].tobytes()
        file = b"".join((self._header, _varint(count), _varint(len(content)), content, _SYNC))
        try:
            frame = pl.read_avro(io.BytesIO(file))
        except (Exception, pl.exceptions.PanicException):
            return None  # some body is not what it should be; the slow way finds out which
        if len(frame) != count or not np.array_equal(frame[_MARK].to_numpy(), marks):
            return None
        table = frame.drop(_MARK).to_arrow()
        try:
            table.validate(full=True)
            return table.rename_columns([self._names[name] for name in table.column_names]).cast(self.columns)
        except pa.ArrowException:
            return None

    def _one_by_one(self, bodies: pa.Array) -> tuple[pa.Table, dict[int, str]]:
        bad: dict[int, str] = {}
        rows: list[dict[str, Any]] = []
        places: list[int] = []
        for place, body in enumerate(bodies.to_pylist()):
            try:
                record = decode_body(self._parsed, body, self.number, self._walk)
            except InvalidEvent as error:
                bad[place] = shown(error)
                continue
            rows.append({self._names[name]: value for name, value in record.items()})
            places.append(place)
        table, unfit = rows_to_table(rows, self.columns)
        return table, bad | {places[row]: reason for row, reason in unfit.items()}


def _container_header(schema: Schema) -> bytes:
    """The beginning of an Avro object container file without compression."""
    text = json.dumps(schema).encode()
    pairs = ((b"avro.schema", text), (b"avro.codec", b"null"))
    meta = b"".join(_varint(len(key)) + key + _varint(len(value)) + value for key, value in pairs)
    return b"Obj\x01" + _varint(len(pairs)) + meta + _varint(0) + _SYNC


def _varint(number: int) -> bytes:
    """A non-negative long in Avro's zig-zag encoding."""
    number <<= 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
