"""Parquet files of one split: one per day (and hour), named so that nothing is ever overwritten.

``dt=2011-06-12/<load>-<broker>-<partition>-<start>-<attempt>.parquet``: a task that is run again, or twice at once,
writes other files, and nobody sees any of them until the commit names the winner's.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hadoop_etl.storage import writing
from kafka2011.types import BrokerPartition

ROW_GROUP_SIZE = 32 << 20
"""Bytes of columns gathered before a row group is written: readers like large ones, memory is bounded."""

_NEVER_REPEATS = frozenset({"koffset", "knext", "kidx", "value", "ts", "timestamp"})


_PLACE = re.compile(r"-(\d+)-(\d+)-(\d+)-[^-/]+\.parquet\Z")


def place_of(path: str) -> tuple[BrokerPartition, int] | None:
    """The partition and the start of the split a file was written for; None for one that compaction made."""
    found = _PLACE.search(path)
    return (BrokerPartition(int(found[1]), int(found[2])), int(found[3])) if found else None


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file as the commit needs it: path below the table, size, rows, day and hour."""

    path: str
    size: int
    rows: int
    keys: dict[str, str]
    modified_ms: int

    def stats(self) -> str:
        """The statistics of a Delta log entry: only the count.

        A reader takes the bounds of some columns for the bounds of all (the others' are "null"), and then passes over
        every row when it filters by one of the others. Parquet's own statistics let it skip all the same.
        """
        return json.dumps({"numRecords": self.rows})


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
        self._writer = pq.ParquetWriter(
            self._stream, schema, compression="zstd", compression_level=1, use_dictionary=worth, version="2.6"
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

    def close(self) -> int:
        if self._waiting:
            self._write()
        self._writer.close()
        size: int = self._stream.tell()
        self._stack.close()
        return size


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
        return [
            WrittenFile(
                path=file.path,
                size=file.close(),
                rows=file.rows,
                keys=dict(key),
                modified_ms=time.time_ns() // 1_000_000,
            )
            for key, file in self._files.items()
        ]
