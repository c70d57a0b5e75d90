"""Parquet files of one split: one per day (and hour), named so that nothing is ever overwritten.

``dt=2011-06-12/<load>-<broker>-<partition>-<start>-<attempt>.parquet``: a task that is run again, or twice at once,
writes other files, and nobody sees any of them until the commit names the winner's. The names are for people; nothing
is ever read from them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hadoop_etl.columns import BOUNDED
from hadoop_etl.storage import writing

ROW_GROUP_SIZE = 32 << 20
"""Bytes of columns gathered before a row group is written: readers like large ones, memory is bounded."""

MAX_WAITING = 256 << 20
"""Bytes of columns that one split gathers for all its days together."""
MAX_OPEN = 32
"""Files of one split that are open at once."""
ZSTD_LEVEL = 3
"""What Spark and the library itself use; level 1 is a tenth larger and hardly faster."""
_MOST_PIECES = 64
_LOOKED_AT = 20_000


Bounds = Mapping[str, tuple[Any, Any, int]]
"""Column to its least and greatest value, None if it has none, and the number of nulls."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file as the commit needs it: path below the table, size, rows, day and hour, statistics."""

    path: str
    size: int
    rows: int
    keys: dict[str, str]
    modified_ms: int
    stats: str


def statistics(rows: int, bounds: Bounds) -> str:
    """The statistics of a Delta log entry: the count, and the bounds of the columns that have any.

    The table's properties say which columns these are (``BOUNDED``): a reader takes the bounds of some columns for the
    bounds of all, the others' being "null", and then passes over every row when it filters by one of the others.
    """
    least = {name: _said(low, False) for name, (low, _, _) in bounds.items() if low is not None}
    greatest = {name: _said(high, True) for name, (_, high, _) in bounds.items() if high is not None}
    nulls = {name: count for name, (_, _, count) in bounds.items()}
    whole = {"numRecords": rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}
    return json.dumps(whole if bounds else {"numRecords": rows})


def _said(value: Any, up: bool) -> Any:
    """A bound as the log holds it; times there are milliseconds, so the greatest is rounded up."""
    if not isinstance(value, datetime):
        return value
    if up and value.microsecond % 1000 and value < datetime.max.replace(tzinfo=value.tzinfo) - timedelta(seconds=1):
        value += timedelta(milliseconds=1)
    return f"{value.isoformat(timespec='milliseconds').partition('+')[0]}Z"


def bounds_of(metadata: pq.FileMetaData) -> Bounds:
    """The bounds of a file's columns, from what its writer counted."""
    found: dict[str, tuple[Any, Any, int]] = {}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            column = group.column(place)
            counted, name = column.statistics, column.path_in_schema
            if name in BOUNDED and counted is not None:
                low, high, nulls = found.get(name, (None, None, 0))
                if counted.has_min_max:
                    low = counted.min if low is None else min(low, counted.min)
                    high = counted.max if high is None else max(high, counted.max)
                found[name] = (low, high, nulls + counted.null_count)
    return found


class _File:
    """One file of a day. It is opened when there is something to write, and no earlier. Thread: one."""

    def __init__(self, uri: str, path: str, schema: pa.Schema) -> None:
        self._uri, self.path, self._schema = uri, path, schema
        self.rows = 0
        self.waiting_size = 0
        self._waiting: list[pa.Table] = []
        self._stack = ExitStack()
        self._writer: pq.ParquetWriter | None = None
        self._stream: Any = None
        self._metadata: list[pq.FileMetaData] = []

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    def add(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        self._waiting.append(table)
        self.waiting_size += table.nbytes
        if len(self._waiting) >= _MOST_PIECES:
            # Each small table has a price of its own, larger than a few rows.
            self._waiting = [pa.concat_tables(self._waiting).combine_chunks()]

    def write(self) -> None:
        """Write what was gathered as one row group."""
        table = pa.concat_tables(self._waiting)
        if self._writer is None:
            self._stream = self._stack.enter_context(writing(f"{self._uri}/{self.path}"))
            self._writer = pq.ParquetWriter(
                self._stream,
                self._schema,
                compression="zstd",
                compression_level=ZSTD_LEVEL,
                version="2.6",
                metadata_collector=self._metadata,
                **_encodings(table),
            )
        self._writer.write_table(table, row_group_size=1 << 20)
        self._waiting, self.waiting_size = [], 0

    def close(self, keys: dict[str, str]) -> WrittenFile:
        if self._waiting or self._writer is None:
            self.write()
        assert self._writer is not None
        self._writer.close()
        size: int = self._stream.tell()
        self._stack.close()
        stats = statistics(self.rows, bounds_of(self._metadata[0]))
        return WrittenFile(self.path, size, self.rows, keys, time.time_ns() // 1_000_000, stats)


def _encodings(table: pa.Table) -> dict[str, Any]:
    """How to write each column, by what the first rows hold.

    Values that repeat go through a dictionary, as everywhere. Numbers that hardly do (offsets, times, counters) are
    written as differences, which is a fraction of their size; Parquet's own way would be to give the dictionary up
    half-way and to write them in full.
    """
    repeating: list[str] = []
    encodings: dict[str, str] = {}
    some = table.slice(0, _LOOKED_AT)
    for column in some.schema:
        kind = column.type
        if pa.types.is_nested(kind):
            continue
        values = some.column(column.name)
        distinct = pc.count_distinct(values).as_py() if _is_countable(kind) else 0
        if distinct <= max(1, len(some) // 2):
            repeating.append(column.name)
        elif pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
            encodings[column.name] = "DELTA_BINARY_PACKED"
    return {"use_dictionary": repeating, "column_encoding": encodings or None}


def _is_countable(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind)
    )


class SplitFiles:
    """The files of one attempt at one split: one per day, or more where a day has many rows. Thread: one.

    A split may touch a thousand days. So rows are gathered first, in bounded memory, and only few files are open.
    """

    def __init__(self, table_uri: str, stem: str, schema: pa.Schema) -> None:
        self._uri, self._stem, self._schema = table_uri, stem, schema
        self._files: dict[tuple[tuple[str, str], ...], _File] = {}
        self._closed: list[WrittenFile] = []
        self._waiting_size = 0

    def add(self, keys: dict[str, str], table: pa.Table) -> None:
        """Put rows into the file of their day (and hour)."""
        key = tuple(keys.items())
        if key not in self._files:
            directory = "/".join(f"{name}={value}" for name, value in key)
            number = f".{len(self._closed)}" if self._closed else ""
            self._files[key] = _File(self._uri, f"{directory}/{self._stem}{number}.parquet", self._schema)
        file = self._files[key]
        file.add(table)
        self._waiting_size += table.nbytes
        if file.waiting_size >= ROW_GROUP_SIZE or self._waiting_size >= MAX_WAITING:
            self._make_room()

    def close(self) -> list[WrittenFile]:
        """Finish all files: they are whole and on disk."""
        while self._files:
            self._finish(next(iter(self._files)))
        return self._closed

    def _make_room(self) -> None:
        """Write the largest of what was gathered; beyond so many open files, finish one."""
        key = max(self._files, key=lambda key: self._files[key].waiting_size)
        self._waiting_size -= self._files[key].waiting_size
        self._files[key].write()
        is_open = [key for key, file in self._files.items() if file.is_open]
        if len(is_open) > MAX_OPEN:
            self._finish(is_open[0])

    def _finish(self, key: tuple[tuple[str, str], ...]) -> None:
        file = self._files.pop(key)
        self._waiting_size -= file.waiting_size
        self._closed.append(file.close(dict(key)))
