"""The body of a task: read one split from its broker, decode it, write its files.

Runs in a Spark executor, or in this process for small loads. It publishes nothing: it returns what it wrote, and the
driver decides. Reading the same bytes again gives the same rows, so a task may be run any number of times.

Paper: §3.1 (a reader asks for an offset and a size; the broker remembers nothing), §4.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hadoop_etl.columns import DEAD_COLUMNS, FRAME, MODERN_COLUMNS, PAYLOAD, file_schema
from hadoop_etl.damage import MAX_ENTRY
from hadoop_etl.decode import Decoded, Format, make_decoder
from hadoop_etl.entries import Entries, read_entries
from hadoop_etl.errors import LoadError
from hadoop_etl.files import SplitFiles
from hadoop_etl.modern import is_modern, read_modern_split
from hadoop_etl.sorter import Batch, DeadRows, Sorter
from hadoop_etl.split import Split
from hadoop_etl.work import SplitResult, Work
from kafka2011.client import BrokerConnection
from kafka2011.errors import ConnectionFailed, RequestTimedOut
from kafka2011.failpoints import fail_point
from kafka2011.types import BrokerAddress, BrokerPartition

PATIENCE_S = 120.0
"""How long a task waits for a broker that went away in mid-read."""

DIED_OF_IT = "a worker process died of this message"

def load_split(work: Work, attempt: str) -> SplitResult:
    """Load one split; ``attempt`` makes the file names this run's own."""
    began = time.monotonic()
    decoder = make_decoder(work.form)
    schema = file_schema(event_columns(work.form, modern=is_modern(work.part)))
    stem = f"{work.load}-{work.part}-{work.split.start}-{attempt}{work.piece}"
    files, dead_files = SplitFiles(work.table_uri, stem, schema), SplitFiles(work.dead_uri, stem, DEAD_COLUMNS)
    sorter = Sorter(work, files, dead_files, schema)
    done = SplitResult(work, work.split.start)
    if is_modern(work.part):
        chunks = read_modern_split(work.topic, work.part, work.address, work.split, work.chunk_size)
    else:
        chunks = read_split(work.topic, work.part, work.address, work.split, work.chunk_size, work.sealed)
    for entries, done.end in chunks:
        batch = Batch.of(entries)
        damaged: DeadRows = [(d.offset, d.index, d.next_offset, d.data, d.reason) for d in entries.dead]
        if work.piece:
            done.seen += len(batch.offset) + len(damaged)
            batch, damaged, guilty = _restricted(work, batch, damaged)
            sorter.add_dead(guilty, PAYLOAD, done)
        sorter.add_dead(damaged, FRAME, done)
        if batch.payload.null_count:
            has_value = pc.is_valid(batch.payload).to_numpy(zero_copy_only=False)
            bare = batch.where(~has_value)
            sorter.add(bare, _without_fields(len(bare.offset), schema), done)
            batch = batch.where(has_value)
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


def event_columns(form: Format, *, modern: bool) -> pa.Schema:
    """The columns of a topic's table that are its own: the events' fields, and what a modern record has besides."""
    fields = make_decoder(form).columns
    return pa.schema([*MODERN_COLUMNS, *fields]) if modern else fields


def _without_fields(count: int, schema: pa.Schema) -> Decoded:
    """What becomes of records whose value is null."""
    nothing = pa.table({"value": pa.nulls(count, pa.binary())})
    return Decoded(np.arange(count), nothing)


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
) -> Iterator[tuple[Entries, int]]:
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
            entries = read_entries(data, position, at_end=at_end, sealed=sealed)
            if entries.size:
                position, size = position + entries.size, chunk_size
                yield entries, position
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
