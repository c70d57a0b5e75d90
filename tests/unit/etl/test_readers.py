"""Any reader of Delta counts events in one table and dead rows in the other, and skips files (issue 21, 8 and 10)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from hadoop_etl.reading import events, quarantine
from tests.property.etl.machine import NOW_MS, World, settled

GAPS = 1


@pytest.fixture(scope="module", params=["loaded", "compacted", "rewound"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Five loads with dead rows of both partitions and a gap; as loaded, with joined files, and brought back."""
    made = settled(World())
    try:
        if request.param != "loaded":
            made.compact()
        if request.param == "rewound":
            made.rewind(3)
            made.rewind(max(made.then) - 1)
        yield made
    finally:
        made.close()


def test_every_reader_finds_events_here_and_dead_rows_there(world: World) -> None:
    """DeltaTable with pyarrow, DuckDB, pandas and polars, none of which knows us, agree with our own readers."""
    uri, dead_uri = world.table.uri, world.table.quarantine.uri
    rows, dead = DeltaTable(uri).to_pyarrow_dataset(), DeltaTable(dead_uri).to_pyarrow_dataset()
    assert rows is not None
    assert dead is not None
    counts = [
        (rows.count_rows(), dead.count_rows()),
        (duckdb.sql("SELECT count(*) FROM rows").fetchall()[0][0], duckdb.sql("FROM dead").to_arrow_table().num_rows),
        (len(DeltaTable(uri).to_pandas()), len(DeltaTable(dead_uri).to_pandas())),
        (pl.read_delta(uri).height, pl.read_delta(dead_uri).height),
        (events(world.table).count_rows(), quarantine(world.table).num_rows),
    ]
    messages = sum(len(log.messages) for log in world.logs)
    lost = messages - counts[0][0] - (counts[0][1] - GAPS)
    assert set(counts) == {counts[0]}
    assert lost == sum(1 for part, a, b in world.now.gaps for offset, _ in world.logs[part].messages if a <= offset < b)
    assert pa.types.is_date(rows.schema.field("dt").type)
    assert duckdb.sql("SELECT min(dt) FROM rows").fetchall() == [(date(2011, 6, 12),)]
    assert pl.read_delta(uri)["dt"].min() == date(2011, 6, 12)
    assert duckdb.sql("SELECT DISTINCT kstage FROM dead ORDER BY 1").fetchall() == [("gap",), ("payload",)]


def test_readers_skip_files_by_offset_and_time(world: World) -> None:
    """The log holds the bounds of offsets and times: narrow filters open few files and find what a full scan does."""
    dataset = DeltaTable(world.table.uri).to_pyarrow_dataset()
    late = datetime.fromtimestamp(NOW_MS / 1000 + 22 * 20_000, UTC)
    last = max(key[1] for key, _ in world.now.rows)
    whole = dataset.to_table()
    for wanted in (pc.field("koffset") == last, pc.field("ts") > pa.scalar(late, pa.timestamp("us", tz="UTC"))):
        found = dataset.to_table(filter=wanted)
        assert found.num_rows == whole.filter(wanted).num_rows > 0
        assert len(list(dataset.get_fragments(filter=wanted))) < len(list(dataset.get_fragments()))
    assert dataset.to_table(filter=pc.field("n") >= 0).num_rows == whole.num_rows
    assert dataset.to_table(filter=pc.field("timestamp") == NOW_MS).num_rows == 1, "a column without bounds"
    frame = pl.scan_delta(world.table.uri).filter(pl.col("koffset") == last).collect()
    assert frame.height == whole.filter(pc.field("koffset") == last).num_rows


def test_what_a_checkpoint_keeps_is_enough(world: World) -> None:
    """Bounds, offsets, first offsets and marks are all there when only the checkpoint is left of the log."""
    left = World(like=world)
    try:
        for uri in (left.table.uri, left.table.quarantine.uri):
            table = DeltaTable(uri)
            table.create_checkpoint()
            for number in range(table.version()):
                Path(uri, "_delta_log", f"{number:020}.json").unlink()
            last = Path(uri, "_delta_log", f"{table.version():020}.json")
            last.write_text('{"commitInfo": {"timestamp": 0, "operation": "WRITE"}}\n')
        before, after = world.table.state(), left.table.state()
        assert (after.positions, after.commits, after.dead) == (before.positions, before.commits, before.dead)
        assert all(position.mark is not None for position in after.positions.values())
        assert (left.table.files(), left.table.dead_files()) == (world.table.files(), world.table.dead_files())
        left.send(1, "ab")
        left.load()
    finally:
        left.close()
