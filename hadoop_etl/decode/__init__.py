"""Payloads to columns: raw, JSON or Avro.

A decoder takes a column of payloads and gives back the columns of those it could read, and a reason for each it could
not. The quick way reads a whole batch at once and proves that every row came from its own payload; whenever that proof
fails, the batch is read row by row, so one bad message costs only itself.

Paper: §4 (Avro with a schema id; JSON and raw bytes beside it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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


def byte_bounds(values: pa.Array) -> tuple[npt.NDArray[np.uint8], Ints]:
    """The content of a binary column and where each value begins, one more than there are values."""
    bounds = np.frombuffer(values.buffers()[1], dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    content = values.buffers()[2]
    raw = np.frombuffer(content, dtype=np.uint8) if content is not None else np.zeros(0, dtype=np.uint8)
    return raw, bounds.astype(np.int64)
