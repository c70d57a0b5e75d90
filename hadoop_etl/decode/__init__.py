"""Payloads to columns: raw, JSON or Avro.

A decoder takes a column of payloads and gives back the columns of those it could read, and a reason for each it could
not. The quick way reads a whole batch at once and proves that every row came from its own payload; whenever that proof
fails, the batch is read row by row, so one bad message costs only itself.

Paper: §4 (Avro with a schema id; JSON and raw bytes beside it).
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hadoop_etl.event_time import AUTO, TimeRule
from hadoop_etl.schema import column_names
from kafka2011.avro import Schema

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Format:
    """How a topic's payloads are to be read; part of the plan."""

    name: str = "raw"
    schemas: Mapping[int, Schema] = field(default_factory=dict)
    time: TimeRule = field(default_factory=TimeRule)

    def column_names(self) -> dict[str, str]:
        """The warehouse column of each field, in all versions of the schema."""
        return column_names(*(self.schemas[number] for number in sorted(self.schemas)))

    def time_column(self) -> str | None:
        """The column that holds the event's own time, if there is one."""
        return self.column_names().get(self.time.field)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        schemas = {str(number): dict(schema) for number, schema in self.schemas.items()}
        times = {"time_field": self.time.field, "time_format": self.time.format, "time_zone": self.time.zone}
        return {"name": self.name, "schemas": schemas, **times}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Format:
        """Read back what ``as_dict`` wrote, also before formats and zones were there."""
        time = TimeRule(found["time_field"], found.get("time_format", AUTO), found.get("time_zone", "UTC"))
        return cls(found["name"], {int(n): s for n, s in found["schemas"].items()}, time)


@dataclass(slots=True)
class Decoded:
    """What became of a batch: ``kept`` are the places of the readable payloads, ``columns`` theirs in that order."""

    kept: Ints
    columns: pa.Table
    dead: dict[int, str] = field(default_factory=dict)
    schema_id: pa.Array | None = None


class Decoder(Protocol):
    """Reads payloads of one topic. Thread: one."""

    columns: pa.Schema

    def decode(self, payloads: pa.Array) -> Decoded:
        """Read a batch."""


def make_decoder(form: Format) -> Decoder:
    """The decoder of a format; its libraries are imported only now."""
    if form.name == "avro":
        from hadoop_etl.decode.avro import AvroDecoder

        return AvroDecoder(form)
    if form.name == "json":
        from hadoop_etl.decode.json import JsonDecoder

        return JsonDecoder(form)
    from hadoop_etl.decode.raw import RawDecoder

    return RawDecoder()


def rows_to_table(rows: Sequence[Mapping[str, Any]], columns: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
    """Rows as columns of these types, and the reason for each row that does not fit them."""
    bad: dict[int, str] = {}
    good: list[pa.Table] = []
    fitted: list[tuple[int, dict[str, Any]]] = []
    for place, row in enumerate(rows):
        try:
            fitted.append((place, _fit(row, columns)))
        except Exception as error:
            # Whatever its class, it is this row's doing.
            bad[place] = _misfit(error)

    def convert(first: int, last: int) -> None:
        try:
            good.append(pa.Table.from_pylist([row for _, row in fitted[first:last]], schema=columns))
        except Exception as error:
            # Half a letter, a number too large: it is some row's doing, and halving finds which.
            if last - first == 1:
                bad[fitted[first][0]] = _misfit(error)
            else:
                middle = (first + last) // 2
                convert(first, middle)
                convert(middle, last)

    if fitted:
        convert(0, len(fitted))
    return pa.concat_tables(good) if good else columns.empty_table(), bad


def _misfit(error: Exception) -> str:
    return f"a field has the wrong type: {shown(error)}"


def shown(error: BaseException, most: int = 300) -> str:
    """What an error says, in a length that a table can hold; values inside it may be of any size."""
    text = str(error) or type(error).__name__
    text = text if len(text) <= most else f"{text[:most]}…"
    return text.encode(errors="backslashreplace").decode()


def _fit(row: Mapping[str, Any], columns: pa.Schema) -> dict[str, Any]:
    return {column.name: fit_value(row.get(column.name), column.type) for column in columns}


def fit_value(value: Any, kind: pa.DataType) -> Any:
    """A value as Arrow wants it: maps as pairs, what is kept as text as JSON."""
    if value is None:
        return None
    if pa.types.is_string(kind) and not isinstance(value, str):
        return dumps(value, default=_text, sort_keys=True, allow_nan=False)
    if isinstance(value, Mapping) != (pa.types.is_map(kind) or pa.types.is_struct(kind)):
        raise TypeError(f"{_short(value)} is not {kind}")
    if pa.types.is_map(kind):
        return [(key, fit_value(part, kind.item_type)) for key, part in value.items()]
    if pa.types.is_struct(kind):
        return {part.name: fit_value(value.get(part.name), part.type) for part in kind}
    if pa.types.is_list(kind):
        if not isinstance(value, list):
            raise TypeError(f"{_short(value)} is not a list")
        return [fit_value(part, kind.value_type) for part in value]
    if isinstance(value, bool) != pa.types.is_boolean(kind):
        raise TypeError(f"{_short(value)} is not {kind}")
    if isinstance(value, float) and pa.types.is_integer(kind):
        # Arrow itself would cut the fraction off without a word.
        if not value.is_integer():
            raise TypeError(f"{_short(value)} is not {kind}")
        return int(value)
    return value


def _short(value: Any) -> str:
    return reprlib.repr(value)


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def byte_bounds(values: pa.Array) -> tuple[npt.NDArray[np.uint8], Ints]:
    """The content of a binary column and where each value begins, one more than there are values."""
    bounds = np.frombuffer(values.buffers()[1], dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    content = values.buffers()[2]
    raw = np.frombuffer(content, dtype=np.uint8) if content is not None else np.zeros(0, dtype=np.uint8)
    return raw, bounds.astype(np.int64)
