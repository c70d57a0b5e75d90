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
import pyarrow.parquet as pq

from hadoop_etl.columns import BOUNDED
from hadoop_etl.storage import writing

ROW_GROUP_SIZE = 32 << 20
"""Bytes of columns gathered before a row group is written: readers like large ones, memory is bounded."""

_NEVER_REPEATS = frozenset({"koffset", "knext", "kidx", "value", "ts", "timestamp"})


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
    def __init__(self, uri: str, path: str, schema: pa.Schema) -> None:
        self.path = path
        self.rows = 0
        self._waiting: list[pa.Table] = []
        self._waiting_size = 0
        self._schema = schema
        self._stack = ExitStack()
        self._stream = self._stack.enter_context(writing(f"{uri}/{path}"))
        # Offsets and payloads never repeat: a dictionary of them would be made and thrown away.
        worth = [f.name for f in schema if f.name not in _NEVER_REPEATS and not pa.types.is_nested(f.type)]
        self._metadata: list[pq.FileMetaData] = []
        self._writer = pq.ParquetWriter(
            self._stream,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=worth,
            version="2.6",
            metadata_collector=self._metadata,
        )

    def add(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        self._waiting.append(table)
        self._waiting_size += table.nbytes
        if self._waiting_size >= ROW_GROUP_SIZE:
            self._write()

    def _write(self) -> None:
        self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=1 << 20)
        self._waiting, self._waiting_size = [], 0

    def close(self, keys: dict[str, str]) -> WrittenFile:
        if self._waiting:
            self._write()
        self._writer.close()
        size: int = self._stream.tell()
        self._stack.close()
        stats = statistics(self.rows, bounds_of(self._metadata[0]))
        return WrittenFile(self.path, size, self.rows, keys, time.time_ns() // 1_000_000, stats)


class SplitFiles:
    """The files of one attempt at one split. Thread: one."""

    def __init__(self, table_uri: str, stem: str, schema: pa.Schema) -> None:
        self._uri, self._stem, self._schema = table_uri, stem, schema
        self._files: dict[tuple[tuple[str, str], ...], _File] = {}

    def add(self, keys: dict[str, str], table: pa.Table) -> None:
        """Put rows into the file of their day (and hour)."""
        key = tuple(keys.items())
        if key not in self._files:
            directory = "/".join(f"{name}={value}" for name, value in key)
            self._files[key] = _File(self._uri, f"{directory}/{self._stem}.parquet", self._schema)
        self._files[key].add(table)

    def close(self) -> list[WrittenFile]:
        """Finish all files: they are whole and on disk."""
        return [file.close(dict(key)) for key, file in self._files.items()]
