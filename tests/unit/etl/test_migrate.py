"""Tables of an older edition, with dead rows inside and days as text, are moved over (issue 21, point 8)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction

from hadoop_etl.errors import CannotRewind, WarehouseError
from hadoop_etl.gaps import gaps_of
from hadoop_etl.ledger import Position
from hadoop_etl.migrate import migrate
from hadoop_etl.upkeep import compact, plan_rewind, vacuum
from hadoop_etl.warehouse import TopicTable, Warehouse
from kafka2011.failpoints import activate
from kafka2011.types import BrokerPartition

OLD = pa.schema(
    [
        ("kbroker", pa.int32()),
        ("kpart", pa.int32()),
        ("koffset", pa.int64()),
        ("kidx", pa.int32()),
        ("knext", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("schema_id", pa.int32()),
        ("kerror", pa.string()),
        ("value", pa.binary()),
        ("n", pa.int64()),
    ]
)
PARTS = [BrokerPartition(0, 0), BrokerPartition(0, 1)]


@pytest.fixture(params=[False, True], ids=["by-day", "by-hour"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> TopicTable:
    """A table as version 1.0 wrote it: two events, two dead rows, a gap; one partition has an offset and no row."""
    table, keys = Warehouse(str(tmp_path)).table("clicks"), ["dt", *(["hr"] if request.param else [])]
    columns = pa.schema([*((key, pa.string()) for key in keys), *OLD])
    DeltaTable.create(table.uri, schema=columns, partition_by=keys, configuration={"delta.checkpointInterval": "50"})
    rows = {
        "2011-06-12": [(10, 20, None, None, 1), (20, 30, None, None, 2)],
        "__dead__": [(30, 40, "not JSON: x", b"x", None), (40, 50, "wrong CRC (10 bytes)", b"y", None)],
        "__gap__": [(50, 90, "gap: deleted on the broker before it was loaded", None, None)],
    }
    actions = []
    for day, made in rows.items():
        filed = {key: day if key == "dt" else "00" for key in keys}
        path = "/".join(f"{key}={value}" for key, value in filed.items()) + "/load-0-0-0-0.parquet"
        target = Path(table.uri, path)
        target.parent.mkdir(parents=True)
        names = ("koffset", "knext", "kerror", "value", "n")
        listed = [{"kbroker": 0, "kpart": 0, "kidx": 0, **dict(zip(names, row, strict=True))} for row in made]
        pq.write_table(pa.Table.from_pylist(listed, schema=OLD), target)
        stats = json.dumps({"numRecords": len(made)})
        actions.append(AddAction(path, target.stat().st_size, filed, 0, True, stats))
    notes = {"load": "old", "kind": "load", "format": {"name": "json"}, "partitions": ["0-0", "0-1"], "commit": "c"}
    offsets = [Transaction("etl/clicks/0-0", 90), Transaction("etl/clicks/0-1", 70)]
    delta = DeltaTable(table.uri)
    said = CommitProperties(custom_metadata={"kafka2011": json.dumps(notes)}, app_transactions=offsets)
    delta.create_write_transaction(actions, "append", delta.schema(), keys, commit_properties=said)
    return table


def check(table: TopicTable) -> None:
    """Everything is there, in its place."""
    rows = DeltaTable(table.uri).to_pyarrow_dataset().to_table()
    assert sorted(rows["koffset"].to_pylist()) == [10, 20]
    assert sorted(rows["n"].to_pylist()) == [1, 2]
    assert {str(day) for day in rows["dt"].to_pylist()} == {"2011-06-12"}
    assert pa.types.is_date(rows.schema.field("dt").type)
    assert "kerror" not in rows.schema.names
    dead = DeltaTable(table.quarantine.uri).to_pyarrow_dataset().to_table().to_pylist()
    assert sorted((row["koffset"], row["kstage"], row["value"]) for row in dead) == [
        (30, "payload", b"x"),
        (40, "frame", b"y"),
        (50, "gap", None),
    ]
    assert table.state().positions == dict(zip(PARTS, [Position(10, 90), Position(70, 70)], strict=True))
    assert [(gap.start, gap.end) for gap in gaps_of(table)] == [(50, 90)]
    assert table.state().notes["format"] == {"name": "json"}


def test_an_old_table_is_refused_and_moved_over(old: TopicTable) -> None:
    """Until it is moved over the error says how; afterwards every row and offset is there, and it is kept up as any."""
    with pytest.raises(WarehouseError, match="etl migrate"):
        old.state()
    with pytest.raises(WarehouseError, match="etl migrate"):
        old.dataset()
    assert migrate(old, dry_run=True).moved == 3
    done = migrate(old)
    assert done.moved == 3
    check(old)
    assert migrate(old).version is None
    with pytest.raises(CannotRewind, match="older edition"):
        plan_rewind(old, 1)
    compact(old)
    vacuum(old, keep_hours=0, dry_run=False)
    check(old)


@pytest.mark.parametrize("step", ["etl.commit.before", "etl.commit.after", "etl.dead.before", "etl.dead.after"])
def test_a_migration_that_died_is_done_again_or_is_done(old: TopicTable, step: str) -> None:
    """Before its commit nothing has changed; after it the next command settles what is left."""
    with activate(step, "raise:EIO"), pytest.raises(OSError, match=step):
        migrate(old)
    again = Warehouse(str(Path(old.uri).parent)).table("clicks")
    migrate(again)
    again.settle()
    check(again)
