"""The body of a task: read one split from its broker, decode it, write its files.

Runs in a Spark executor, or in this process for small loads. It publishes nothing: it returns what it wrote, and the
driver decides. Reading the same bytes again gives the same rows, so a task may be run any number of times.

Paper: §3.1 (a reader asks for an offset and a size; the broker remembers nothing), §4.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hadoop_etl.columns import (
    DAY_MS,
    DEAD_COLUMNS,
    FRAME,
    HOUR_MS,
    PAYLOAD,
    DeadRow,
    Ints,
    day_of,
    dead_table,
    file_schema,
)
from hadoop_etl.cuts import Split
from hadoop_etl.decode import Decoded, Format, make_decoder
from hadoop_etl.errors import LoadError
from hadoop_etl.event_time import Flags
from hadoop_etl.files import SplitFiles, WrittenFile
from hadoop_etl.frames import MAX_ENTRY, Frames, read_frames
from kafka2011.client import BrokerConnection
from kafka2011.errors import ConnectionFailed, RequestTimedOut
from kafka2011.failpoints import fail_point
from kafka2011.types import BrokerAddress, BrokerPartition

PATIENCE_S = 120.0
"""How long a task waits for a broker that went away in mid-read."""

DIED_OF_IT = "a worker process died of this message"

DeadRows = list[DeadRow]


@dataclass(frozen=True, slots=True)
class Work:
    """One split with all a task needs to know; small, and can be pickled."""

    load: str
    topic: str
    part: BrokerPartition
    address: BrokerAddress
    split: Split
    form: Format
    table_uri: str
    dead_uri: str
    by_hour: bool
    load_day: str
    late_before_ms: int
    chunk_size: int
    deadline_ms: int | None = None
    piece: str = ""
    """Set when a split is read again in halves (``halving``), as is all that follows."""
    only: tuple[int, int] | None = None
    """Of the one entry of this split, only the messages with these indices."""
    guilty: tuple[tuple[int, int], ...] = ()
    """Offset and index of messages a worker died of: they are dead rows, and no decoder sees them."""
    sealed: tuple[int, ...] = ()
    """Offsets of wrappers that are not to be opened."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A split that could not be loaded, and why. ``died``: its worker did not say, it was gone."""

    work: Work
    reason: str
    died: bool = False


@dataclass(slots=True)
class Done:
    """What a task did. ``end`` is where its walk stopped; ``stopped`` says that the deadline was the reason."""

    work: Work
    end: int
    files: list[WrittenFile] = field(default_factory=list)
    dead_files: list[WrittenFile] = field(default_factory=list)
    rows: int = 0
    dead: int = 0
    late: int = 0
    extra: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    hours: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0
    stopped: bool = False
    seen: int = 0
    """Messages there were, of which a piece may be only some."""


Result = Done | Lost


def load_split(work: Work, attempt: str) -> Done:
    """Load one split; ``attempt`` makes the file names this run's own."""
    began = time.monotonic()
    decoder = make_decoder(work.form)
    schema = file_schema(decoder.columns)
    stem = f"{work.load}-{work.part}-{work.split.start}-{attempt}{work.piece}"
    files, dead_files = SplitFiles(work.table_uri, stem, schema), SplitFiles(work.dead_uri, stem, DEAD_COLUMNS)
    sorter = Sorter(work, files, dead_files, schema)
    done = Done(work, work.split.start)
    chunks = read_split(work.topic, work.part, work.address, work.split, work.chunk_size, work.sealed)
    for frames, done.end in chunks:
        batch = Batch.of(frames)
        damaged: DeadRows = [(d.offset, d.index, d.next_offset, d.data, d.reason) for d in frames.dead]
        if work.piece:
            done.seen += len(batch.offset) + len(damaged)
            batch, damaged, guilty = _restricted(work, batch, damaged)
            sorter.add_dead(guilty, PAYLOAD, done)
        sorter.add_dead(damaged, FRAME, done)
        fail_point("etl.task.batch", batch.content)
        if len(batch.payload):
            decoded = decoder.decode(batch.payload)
            dead: DeadRows = [batch.dead_row(place, reason) for place, reason in decoded.dead.items()]
            dead += sorter.add(batch, decoded, done)
            sorter.add_dead(dead, PAYLOAD, done)
        if work.deadline_ms is not None and time.time_ns() // 1_000_000 >= work.deadline_ms:
            done.stopped = done.end < work.split.end
            break
    done.files, done.dead_files = files.close(), dead_files.close()
    fail_point("etl.task.done")
    done.seconds = time.monotonic() - began
    return done


def _restricted(work: Work, batch: Batch, damaged: DeadRows) -> tuple[Batch, DeadRows, DeadRows]:
    """What of a chunk a piece of a split is about: some of a wrapper's messages, the guilty ones apart."""
    keep = np.ones(len(batch.offset), dtype=np.bool_)
    if work.only is not None:
        first, last = work.only
        keep = (batch.index >= first) & (batch.index < last)
        damaged = [row for row in damaged if first <= row[1] < last]
    guilty: DeadRows = []
    for offset, index in work.guilty:
        for place in np.flatnonzero(keep & (batch.offset == offset) & (batch.index == index)):
            keep[place] = False
            guilty.append(batch.dead_row(int(place), DIED_OF_IT))
    return batch.where(keep), damaged, guilty


def read_split(
    topic: str,
    part: BrokerPartition,
    address: BrokerAddress,
    split: Split,
    chunk_size: int,
    sealed: Collection[int] = (),
) -> Iterator[tuple[Frames, int]]:
    """The chunks of a split, each with the offset it reaches; the last one may reach beyond an unsure end."""
    position, size = split.start, chunk_size
    with BrokerConnection(address.host, address.port, connect_timeout_s=5.0) as connection:
        while position < split.end:
            # Beyond the end only for an entry that crosses it, and never beyond a boundary that is sure.
            last = split.end if size == chunk_size else split.sure_end
            asked = min(size, last - position)
            data = _fetch(connection, topic, part, position, asked)
            # An entry never crosses a segment, and an answer shorter than asked for is the end of one.
            at_end = position + len(data) >= split.sure_end or (size >= MAX_ENTRY and len(data) < asked)
            frames = read_frames(data, position, at_end=at_end, sealed=sealed)
            if frames.size:
                position, size = position + frames.size, chunk_size
                yield frames, position
            elif size < MAX_ENTRY:
                size = min(size * 4, MAX_ENTRY)
            else:
                raise LoadError(
                    f"{topic} {part}: nothing readable within {len(data)} bytes at offset {position}; is this a "
                    "message boundary? Plan again, and look at the broker's log with 'kafka2011 log verify'"
                )


def _fetch(connection: BrokerConnection, topic: str, part: BrokerPartition, offset: int, size: int) -> bytes:
    """Fetch, waiting for a broker that is away: what was flushed is there again when it returns."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            data = connection.fetch(topic, part.partition, offset, size)
        except (ConnectionFailed, RequestTimedOut):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
            continue
        if not data:
            raise LoadError(
                f"{topic} {part}: the broker at {connection} has nothing at offset {offset}, which was flushed when "
                "the load was planned. It lost data, or is another broker; nothing was published"
            )
        return data


@dataclass(frozen=True, slots=True)
class Batch:
    """The messages of a chunk as columns of one length."""

    payload: pa.Array
    offset: Ints
    index: Ints
    following: Ints

    @classmethod
    def of(cls, frames: Frames) -> Batch:
        """All rows of a chunk together."""
        rows = frames.rows
        if not rows:
            empty = np.zeros(0, dtype=np.int64)
            return cls(pa.array([], pa.binary()), empty, empty, empty)
        if len(rows) == 1:
            return cls(rows[0].payload, rows[0].offset, rows[0].index, rows[0].next_offset)
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
        return Batch(self.payload.filter(pa.array(keep)), self.offset[keep], self.index[keep], self.following[keep])

    def dead_row(self, place: int, reason: str) -> tuple[int, int, int, bytes, str]:
        """One of the messages as a dead row."""
        data: bytes = self.payload[place].as_py()
        return int(self.offset[place]), int(self.index[place]), int(self.following[place]), data, reason


class Sorter:
    """Puts rows under the day of their event, and dead ones under the day of the load. Thread: one."""

    def __init__(self, work: Work, files: SplitFiles, dead_files: SplitFiles, schema: pa.Schema) -> None:
        self._work, self._files, self._dead_files, self._schema = work, files, dead_files, schema
        self._rule, self._time = work.form.time, work.form.time_column()

    def add(self, batch: Batch, decoded: Decoded, done: Done) -> DeadRows:
        """File the decoded rows and count them; return those whose time cannot be read, or no calendar has."""
        time_ms, has_time, bad = self._times(decoded.columns)
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

    def add_dead(self, dead: DeadRows, stage: str, done: Done) -> None:
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
        for number in np.unique(bins):
            self._files.add(self._bin_keys(int(number), step), table.filter(pa.array(bins == number)))

    def _bin_keys(self, number: int, step: int) -> dict[str, str]:
        if number == np.iinfo(np.int64).min:
            return self._keys(self._work.load_day, 0)
        return self._keys(day_of(number * step), number * step // HOUR_MS % 24)

    def _keys(self, day: str, hour: int) -> dict[str, str]:
        return {"dt": day, "hr": f"{hour:02}"} if self._work.by_hour else {"dt": day}
