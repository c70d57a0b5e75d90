"""Rows under the day of their event, dead rows under the day of the load.

Paper: §4 (events are filed by their own time).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hadoop_etl.columns import DAY_MS, HOUR_MS, MODERN_COLUMNS, DeadRow, Ints, day_of, dead_table
from hadoop_etl.decode import Decoded
from hadoop_etl.entries import Entries
from hadoop_etl.event_time import Flags
from hadoop_etl.files import SplitFiles
from hadoop_etl.work import SplitResult, Work

DeadRows = list[DeadRow]


@dataclass(frozen=True, slots=True)
class Batch:
    """The messages of a chunk as columns of one length."""

    payload: pa.Array
    offset: Ints
    index: Ints
    following: Ints
    own: pa.Table | None = None
    """Of a modern topic: ``MODERN_COLUMNS``."""

    @classmethod
    def of(cls, entries: Entries) -> Batch:
        """All rows of a chunk together."""
        rows = entries.rows
        if not rows:
            empty = np.zeros(0, dtype=np.int64)
            return cls(pa.array([], pa.binary()), empty, empty, empty)
        if len(rows) == 1:
            return cls(rows[0].payload, rows[0].offset, rows[0].index, rows[0].next_offset, rows[0].own)
        return cls(
            pa.concat_arrays([r.payload for r in rows]),
            np.concatenate([r.offset for r in rows]),
            np.concatenate([r.index for r in rows]),
            np.concatenate([r.next_offset for r in rows]),
        )

    def content(self) -> bytes:
        """All payloads, for those who look for a mark in them."""
        return b"\n".join(self.payload.to_pylist())

    def where(self, keep: Flags) -> Batch:
        """Some of the messages."""
        if keep.all():
            return self
        own = None if self.own is None else self.own.filter(pa.array(keep))
        payload = self.payload.filter(pa.array(keep))
        return Batch(payload, self.offset[keep], self.index[keep], self.following[keep], own)

    def dead_row(self, place: int, reason: str) -> tuple[int, int, int, bytes, str]:
        """One of the messages as a dead row."""
        data: bytes = self.payload[place].as_py()
        return int(self.offset[place]), int(self.index[place]), int(self.following[place]), data, reason


class Sorter:
    """Puts rows under the day of their event, and dead ones under the day of the load. Thread: one."""

    def __init__(self, work: Work, files: SplitFiles, dead_files: SplitFiles, schema: pa.Schema) -> None:
        self._work, self._files, self._dead_files, self._schema = work, files, dead_files, schema
        self._rule, self._time = work.form.time, work.form.time_column()

    def add(self, batch: Batch, decoded: Decoded, done: SplitResult) -> DeadRows:
        """File the decoded rows and count them; return those whose time cannot be read, or no calendar has."""
        time_ms, has_time, bad = self._times(decoded.columns)
        if batch.own is not None:
            # Where no field says otherwise, the record's own time is the event's.
            stamps = batch.own.column("ktime").combine_chunks().take(pa.array(decoded.kept))
            stamp_us = pc.fill_null(pc.cast(stamps, pa.int64()), 0).to_numpy(zero_copy_only=False)
            time_ms = np.where(has_time, time_ms, stamp_us // 1000)
            has_time = has_time | pc.is_valid(stamps).to_numpy(zero_copy_only=False)
        table = self._table(batch, decoded, pa.array(time_ms, mask=~has_time))
        dead: DeadRows = [batch.dead_row(int(decoded.kept[i]), reason) for i, reason in bad.items()]
        if bad:
            good = np.ones(len(time_ms), dtype=np.bool_)
            good[list(bad)] = False
            table = table.filter(pa.array(good))
            time_ms, has_time = time_ms[good], has_time[good]
        done.rows += table.num_rows
        done.late += int((has_time & (time_ms < self._work.late_before_ms)).sum())
        if "extra" in table.column_names:
            done.extra += table.num_rows - table.column("extra").null_count
        hours, counts = np.unique(time_ms[has_time] // HOUR_MS, return_counts=True)
        done.hours.update(dict(zip(hours.tolist(), counts.tolist(), strict=True)))
        self._file(table, time_ms, has_time)
        return dead

    def add_dead(self, dead: DeadRows, stage: str, done: SplitResult) -> None:
        """File what could not be read and count it."""
        if dead:
            table = dead_table(self._work.part.broker_id, self._work.part.partition, dead, stage)
            self._dead_files.add({"dt": self._work.load_day}, table)
            done.dead += len(dead)
            done.reasons.update(reason.partition(":")[0][:80] for *_, reason in dead)

    def _times(self, columns: pa.Table) -> tuple[Ints, Flags, dict[int, str]]:
        """The events' own times in milliseconds, which have one, and which cannot be read."""
        if self._time not in columns.column_names:
            count = columns.num_rows
            return np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_), {}
        return self._rule.read(columns.column(self._time).combine_chunks())

    def _table(self, batch: Batch, decoded: Decoded, time_ms: pa.Array) -> pa.Table:
        columns, kept = decoded.columns, decoded.kept
        count = columns.num_rows
        own = {
            "kbroker": pa.repeat(pa.scalar(self._work.part.broker_id, pa.int32()), count),
            "kpart": pa.repeat(pa.scalar(self._work.part.partition, pa.int32()), count),
            "koffset": pa.array(batch.offset[kept], pa.int64()),
            "kidx": pa.array(batch.index[kept].astype(np.int32), pa.int32()),
            "knext": pa.array(batch.following[kept], pa.int64()),
            "ts": pc.cast(pc.cast(time_ms, pa.timestamp("ms", tz="UTC")), pa.timestamp("us", tz="UTC"), safe=False),
            "schema_id": decoded.schema_id,
        }
        if batch.own is not None:
            own |= {name: batch.own.column(name).take(pa.array(kept)) for name in MODERN_COLUMNS.names}
        names = set(columns.column_names)
        made = []
        for f in self._schema:
            column = own.get(f.name)
            if column is None:
                column = columns.column(f.name) if f.name in names else pa.nulls(count, f.type)
            made.append(column)
        return pa.table(made, schema=self._schema)

    def _file(self, table: pa.Table, time_ms: Ints, has_time: Flags) -> None:
        """Split by day (and hour); an event without a time goes under the day of the load."""
        step = HOUR_MS if self._work.by_hour else DAY_MS
        bins = np.where(has_time, self._rule.local(time_ms) // step, np.iinfo(np.int64).min)
        if not len(bins):
            return
        if bins.min() == bins.max():
            self._files.add(self._bin_keys(int(bins[0]), step), table)
            return
        # One sort for all days: a filter for each would look at every row once per day.
        order = np.argsort(bins, kind="stable")
        table, bins = table.take(pa.array(order)), bins[order]
        edges = [0, *(np.flatnonzero(np.diff(bins)) + 1).tolist(), len(bins)]
        for first, last in pairwise(edges):
            self._files.add(self._bin_keys(int(bins[first]), step), table.slice(first, last - first))

    def _bin_keys(self, number: int, step: int) -> dict[str, str]:
        if number == np.iinfo(np.int64).min:
            return self._keys(self._work.load_day, 0)
        return self._keys(day_of(number * step), number * step // HOUR_MS % 24)

    def _keys(self, day: str, hour: int) -> dict[str, str]:
        return {"dt": day, "hr": f"{hour:02}"} if self._work.by_hour else {"dt": day}
