"""JSON events: one object per payload, columns by the topic's schema.

The quick way reads the batch as lines. It counts only if every payload begins with ``{``, ends with ``}``, is UTF-8
and holds no line break, and as many rows come out as went in: then each payload is exactly one object. Fields the
schema does not know are kept as JSON text in the column ``extra``.

Neither way sees a payload that is nested too deep, too wide or too large (``bounds``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from hadoop_etl.decode import Decoded, Format, byte_bounds
from hadoop_etl.decode.bounds import beyond_json
from hadoop_etl.decode.fitting import rows_to_table, shown
from hadoop_etl.event_time import UnreadableTime
from hadoop_etl.schema import columns_of, is_simple

EXTRA = "extra"
_EXACT = 2.0**53
"""Below it a double holds every whole number."""


class JsonDecoder:
    """Reads JSON objects. Thread: one."""

    def __init__(self, form: Format) -> None:
        schema = next(iter(form.schemas.values()))
        names = form.column_names()
        known = columns_of(schema, names)
        self.columns = known.append(pa.field(EXTRA, pa.string()))
        self._names = {f["name"]: names[f["name"]] for f in schema["fields"]}
        self._types = pa.schema([pa.field(name, c.type) for name, c in zip(self._names, known, strict=True)])
        self._known = _Known({column.name: _known(column.type) for column in self._types})
        self._quick = all(is_simple(f["type"]) for f in schema["fields"])
        self._time = form.time
        self._expects_unknown = False
        """The last batch had fields the schema does not know; the next one will too."""

    def decode(self, payloads: pa.Array) -> Decoded:
        """Read a batch at once if that is provably right, else payload by payload."""
        beyond = beyond_json(*byte_bounds(payloads)) if len(payloads) else {}
        if beyond:
            return self._one_by_one(payloads, beyond)
        table = self._at_once(payloads) if self._quick and len(payloads) else None
        return self._one_by_one(payloads, beyond) if table is None else Decoded(np.arange(len(payloads)), table)

    def _at_once(self, payloads: pa.Array) -> pa.Table | None:
        raw, bounds = byte_bounds(payloads)
        if (np.diff(bounds) < 2).any():
            return None
        if (raw[bounds[:-1]] != ord("{")).any() or (raw[bounds[1:] - 1] != ord("}")).any():
            return None
        if (raw[bounds[0] : bounds[-1]] == ord("\n")).any():
            return None
        try:
            lines = pc.binary_join_element_wise(payloads, pa.scalar(b"\n", pa.binary()), pa.scalar(b"", pa.binary()))
            # The reader itself does not look whether text is UTF-8; others who read the table will.
            pc.cast(lines, pa.string())
            size = int(np.frombuffer(lines.buffers()[1], dtype=np.int32)[len(lines)])
            table = self._read(lines.buffers()[2].slice(0, size))
            if table.num_rows != len(payloads) or any(table.field(f.name).type != f.type for f in self._types):
                return None
            if any(_may_be_inexact(table.column(name)) for name in self._names if name != self._time.field):
                return None
            extra: pa.Array = pa.nulls(len(payloads), pa.string())
            if self._expects_unknown:
                texts = [self._extra(json.loads(payload)) for payload in payloads.to_pylist()]
                extra = pa.array(texts, pa.string())
                self._expects_unknown = extra.null_count < len(extra)
        except (pa.ArrowException, ValueError, RecursionError):
            return None  # some payload is not what it should be; the slow way finds out which
        known = [table.column(name) for name in self._names]
        return pa.table([*known, extra], schema=self.columns)

    def _read(self, text: pa.Buffer) -> pa.Table:
        """The known columns of all lines. Unknown fields are never made columns: there may be thousands of them."""

        def read(unknown: str) -> pa.Table:
            return pyarrow.json.read_json(
                pa.BufferReader(text),
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=max(len(text), 1)),
                parse_options=pyarrow.json.ParseOptions(explicit_schema=self._types, unexpected_field_behavior=unknown),
            )

        if not self._expects_unknown:
            try:
                return read("error")
            except pa.ArrowInvalid as error:
                if "unexpected field" not in str(error):
                    raise
        self._expects_unknown = True
        return read("ignore")

    def _one_by_one(self, payloads: pa.Array, beyond: dict[int, str]) -> Decoded:
        dead = dict(beyond)
        rows: list[dict[str, Any]] = []
        places: list[int] = []
        for place, payload in enumerate(payloads.to_pylist()):
            if place in beyond:
                continue
            try:
                rows.append(self._row(payload))
                places.append(place)
            except UnreadableTime as error:
                dead[place] = str(error)
            except (ValueError, TypeError, RecursionError) as error:
                dead[place] = f"not JSON: {shown(error)}"
        table, bad = rows_to_table(rows, self.columns)
        dead |= {places[row]: reason for row, reason in bad.items()}
        return Decoded(np.array([p for p in places if p not in dead], dtype=np.int64), table, dead)

    def _row(self, payload: bytes) -> dict[str, Any]:
        event = json.loads(payload.decode(json.detect_encoding(payload)))
        if not isinstance(event, dict):
            raise TypeError(f"not an object but {type(event).__name__}")
        row = {column: event.get(name) for name, column in self._names.items()}
        column = self._names.get(self._time.field)
        if column is not None:
            row[column] = self._time.fit(row[column], self._types.field(self._time.field).type)
        return {**row, EXTRA: self._extra(event)}

    def _extra(self, event: dict[str, Any]) -> str | None:
        unknown = _unknown(event, self._known)
        return json.dumps(unknown, allow_nan=False) if unknown else None


def _may_be_inexact(column: pa.ChunkedArray | pa.Array) -> bool:
    """Tell whether a number may have been a whole one that no double can hold: the reader rounds without a word."""
    kind = column.type
    if pa.types.is_list(kind):
        return _may_be_inexact(pc.list_flatten(column))
    if pa.types.is_struct(kind):
        return any(_may_be_inexact(pc.struct_field(column, place)) for place in range(kind.num_fields))
    if not pa.types.is_floating(kind):
        return False
    bounds = pc.min_max(column)
    return any(abs(bound.as_py() or 0) >= _EXACT for bound in (bounds["min"], bounds["max"]))


@dataclass(frozen=True, slots=True)
class _Known:
    """The members of a record that have a place in the warehouse; with theirs, where they are records or lists."""

    members: dict[str, _Known | None]
    is_list: bool = False


def _known(kind: pa.DataType) -> _Known | None:
    if pa.types.is_list(kind):
        inside = _known(kind.value_type)
        return None if inside is None else _Known({"": inside}, is_list=True)
    return _Known({part.name: _known(part.type) for part in kind}) if pa.types.is_struct(kind) else None


def _unknown(event: dict[str, Any], known: _Known) -> dict[str, Any]:
    """The parts of an event its schema has no place for, nested as they were; a list is kept whole."""
    found: dict[str, Any] = {}
    for name, value in event.items():
        if name not in known.members:
            found[name] = value
            continue
        inside = known.members[name]
        if inside is None:
            continue
        if not inside.is_list and isinstance(value, dict):
            inner = _unknown(value, inside)
            if inner:
                found[name] = inner
        elif inside.is_list and isinstance(value, list) and any(_unknown({"": part}, inside) for part in value):
            found[name] = value
    return found
