"""One commit holds files and offsets; rewind and gaps keep them together."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from hadoop_etl import warehouse
from hadoop_etl.actions import CHECKPOINT_EVERY
from hadoop_etl.columns import PAYLOAD, dead_table, file_schema
from hadoop_etl.errors import CannotRewind, LoadLocked, LoadSuperseded, WarehouseError
from hadoop_etl.files import SplitFiles, WrittenFile
from hadoop_etl.gaps import fill_gaps, gaps_of, record_gap
from hadoop_etl.ledger import Position
from hadoop_etl.lock import lock_holder, locked
from hadoop_etl.quarantine import Change
from hadoop_etl.storage import reaching
from hadoop_etl.upkeep import compact, plan_rewind, rewind, vacuum
from hadoop_etl.warehouse import NO_CHANGE, TopicTable, Warehouse
from kafka2011.failpoints import activate
from kafka2011.types import BrokerPartition

PART = BrokerPartition(0, 0)
NO_FIELDS = pa.schema([])


@pytest.fixture
def table(tmp_path: Path) -> TopicTable:
    made = Warehouse(str(tmp_path)).table("clicks")
    made.create(NO_FIELDS, by_hour=False)
    return made


def written(table: TopicTable, load: str, start: int, rows: int, columns: pa.Schema = NO_FIELDS) -> list[WrittenFile]:
    """A file with ``rows`` rows of ten bytes each from ``start``."""
    schema = file_schema(columns)
    files = SplitFiles(table.uri, f"{load}-{PART}-{start}-0", schema)
    offsets = range(start, start + 10 * rows, 10)
    made = [{"kbroker": 0, "kpart": 0, "koffset": o, "kidx": 0, "knext": o + 10} for o in offsets]
    files.add({"dt": "2011-06-12"}, pa.Table.from_pylist(made, schema=schema))
    return files.close()


def dead(table: TopicTable, load: str, start: int, rows: int) -> Change:
    """A file with as many dead rows."""
    made = dead_table(0, 0, [(o, 0, o + 10, b"x", "r") for o in range(start, start + 10 * rows, 10)], PAYLOAD)
    return Change(tuple(table.quarantine.write(made, "2011-06-12", f"{load}-{PART}-{start}-0")))


def load(table: TopicTable, name: str, start: int, rows: int, change: Change = NO_CHANGE) -> int:
    """Publish rows of ten bytes from ``start``, the last ones dead if ``change`` says so."""
    files = written(table, name, start, rows)
    following = start + 10 * (rows + sum(file.rows for file in change.added))
    notes = {"load": name, "kind": "load"}
    return table.commit(
        expected={PART: start} if start else {},
        following={PART: Position(0, following)},
        files=files,
        dead=change,
        notes=notes,
    )


def offsets_in(table: TopicTable, version: int | None = None) -> list[int]:
    return sorted(table.dataset(version).to_table(columns=["koffset"]).column(0).to_pylist())


def test_files_and_offsets_are_one_entry(table: TopicTable) -> None:
    """After each commit the rows end where the offset says (§4)."""
    for name, start in (("a", 0), ("b", 50), ("c", 100)):
        version = load(table, name, start, 5)
        assert table.state().offsets == {PART: start + 50}
        assert table.state().version == version
        assert offsets_in(table) == list(range(0, start + 50, 10))


def test_a_load_that_began_too_early_is_refused(table: TopicTable) -> None:
    """Of two loads of the same offsets the second publishes nothing."""
    load(table, "a", 0, 5)
    with pytest.raises(LoadSuperseded, match="0-0 is now at 50"):
        load(table, "again", 0, 5)
    with pytest.raises(LoadSuperseded):
        load(table, "beyond", 40, 5)
    assert offsets_in(table) == [0, 10, 20, 30, 40]


def test_two_commits_at_once_collide(table: TopicTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they load different partitions: each writes the whole state down, so one of them must be refused."""
    load(table, "a", 0, 5)
    other = Warehouse(str(Path(table.uri).parent)).table("clicks")
    real = warehouse.write_entry

    def overtaken(*arguments: Any) -> None:
        monkeypatch.setattr(warehouse, "write_entry", real)
        other.commit(
            expected={},
            following={BrokerPartition(7, 0): Position(0, 30)},
            dead=dead(other, "overtaking", 0, 3),
            notes={"load": "overtaking", "kind": "load"},
        )
        real(*arguments)

    monkeypatch.setattr(warehouse, "write_entry", overtaken)
    with pytest.raises(LoadSuperseded):
        load(table, "b", 50, 5)
    assert table.state().offsets == {PART: 50, BrokerPartition(7, 0): 30}
    load(table, "b", 50, 5)
    assert table.state().offsets == {PART: 100, BrokerPartition(7, 0): 30}
    assert (len(offsets_in(table)), table.dead_rows().count_rows()) == (10, 3)


def test_a_quarantine_that_is_gone_is_missed(table: TopicTable) -> None:
    """Somebody removed the sibling: no command goes on as if nothing had been there."""
    load(table, "a", 0, 4, dead(table, "a", 40, 1))
    shutil.rmtree(table.quarantine.uri)
    again = Warehouse(str(Path(table.uri).parent)).table("clicks")
    with pytest.raises(WarehouseError, match="bring it back from a copy"):
        load(again, "b", 50, 4)


def test_files_without_a_commit_are_invisible(table: TopicTable) -> None:
    """A load that died leaves files nobody sees; vacuum removes them and nothing else."""
    load(table, "a", 0, 5)
    (orphan,) = written(table, "died", 50, 5)
    assert offsets_in(table) == [0, 10, 20, 30, 40]
    assert vacuum(table, keep_hours=0, dry_run=True) == [orphan.path]
    vacuum(table, keep_hours=0, dry_run=False)
    assert not Path(table.uri, orphan.path).exists()
    assert offsets_in(table) == [0, 10, 20, 30, 40]


def test_rewind_takes_rows_and_offsets_back_together(table: TopicTable) -> None:
    """A consumer can deliberately rewind and read again (§3.1): same rows afterwards, none twice."""
    versions = [load(table, name, start, 5) for name, start in (("a", 0), ("b", 50), ("c", 100))]
    planned = plan_rewind(table, versions[0])
    assert planned.positions == {PART: (Position(0, 150), Position(0, 50))}
    rewind(table, planned)
    assert table.state().offsets == {PART: 50}
    assert offsets_in(table) == offsets_in(table, versions[0])
    assert table.published("a") == versions[0]
    assert table.published("c") is None
    load(table, "d", 50, 10)
    assert offsets_in(table) == list(range(0, 150, 10))


def test_a_rewind_brings_back_what_was_published(table: TopicTable) -> None:
    """Back and forth again: what a later rewind restored is published, what none restored is not."""
    first, second = load(table, "a", 0, 5), load(table, "b", 50, 5)
    rewind(table, plan_rewind(table, first))
    assert (table.published("a"), table.published("b")) == (first, None)
    rewind(table, plan_rewind(table, second))
    assert (table.published("a"), table.published("b")) == (first, second)
    assert offsets_in(table) == list(range(0, 100, 10))
    assert table.published("a", since=first) is None


def test_rewind_to_nothing_after_a_compaction(table: TopicTable) -> None:
    """Joined files have no offsets in their names; the rows come again all the same (issue 21, point 1)."""
    for name, start in (("a", 0), ("b", 50), ("c", 100)):
        load(table, name, start, 5)
    compact(table)
    rewind(table, plan_rewind(table, 0))
    assert (table.state().offsets, offsets_in(table)) == ({PART: 0}, [])


def test_the_cost_of_a_load_does_not_grow(table: TopicTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log entries read for a load are as many after fifty loads as after five (issue 21, point 14)."""
    counts: list[int] = []
    real = warehouse.read_text

    def counted(uri: str) -> str:
        counts[-1] += 1
        return real(uri)

    monkeypatch.setattr(warehouse, "read_text", counted)
    for number in range(50):
        counts.append(0)
        planned = table.state()
        assert table.published(f"load-{number}", planned.version) is None
        load(table, f"load-{number}", 50 * number, 4, dead(table, f"load-{number}", 50 * number + 40, 1))
        assert table.published(f"load-{number}", planned.version) is not None
    assert max(counts[5:]) == counts[5]


def test_old_entries_go_when_a_checkpoint_is_made(table: TopicTable) -> None:
    """To look for them at every commit costs more the longer the log is: flat cost at 2,000 loads (21, Show 4)."""
    log = Path(table.uri, "_delta_log")
    version = load(table, "0", 0, 1)
    while version < 2 * CHECKPOINT_EVERY:
        version = load(table, str(version), 10 * version, 1)
    for entry in log.iterdir():
        os.utime(entry, (1, 1))
    first = log / f"{0:020}.json"
    while (version + 1) % CHECKPOINT_EVERY:
        assert first.exists()
        version = load(table, str(version), 10 * version, 1)
    assert not first.exists()
    assert table.state().offsets == {PART: 10 * version}
    assert len(list(log.glob("*.json"))) <= 2 * CHECKPOINT_EVERY


def test_the_quarantine_follows_once(table: TopicTable) -> None:
    """Whatever dies between the two commits, our readers see every dead row at once, others after the next command."""
    load(table, "a", 0, 4, dead(table, "a", 40, 1))
    for number, step in enumerate(("etl.commit.after", "etl.dead.before", "etl.dead.after"), start=1):
        with activate(step, "raise:EIO"), pytest.raises(OSError, match=step):
            load(table, step, 50 * number, 4, dead(table, step, 50 * number + 40, 1))
        assert table.dead_rows().count_rows() == number + 1
        seen = DeltaTable(table.quarantine.uri).to_pyarrow_dataset().count_rows()
        assert seen == number + (step == "etl.dead.after")
        again = Warehouse(str(Path(table.uri).parent)).table("clicks")
        assert again.is_settled() == (step == "etl.dead.after")
        again.settle()
        assert again.is_settled()
        again.settle()
        assert DeltaTable(table.quarantine.uri).to_pyarrow_dataset().count_rows() == number + 1


def test_rewind_across_a_compaction(table: TopicTable) -> None:
    """Joined files are taken apart again while the old ones exist; after vacuum the rewind is refused."""
    first = load(table, "a", 0, 5)
    load(table, "b", 50, 5)
    before = offsets_in(table)
    assert compact(table)["files_removed"] == 2
    assert offsets_in(table) == before
    assert table.state().offsets == {PART: 100}
    rewind(table, plan_rewind(table, first))
    assert offsets_in(table) == [0, 10, 20, 30, 40]
    again = load(table, "c", 50, 5)
    compact(table)
    vacuum(table, keep_hours=0, dry_run=False)
    with pytest.raises(CannotRewind, match="vacuum"):
        plan_rewind(table, again)
    with pytest.raises(CannotRewind, match="no version"):
        plan_rewind(table, 99)


def test_a_gap_is_a_row_until_it_is_filled(table: TopicTable) -> None:
    """Deleted offsets stay visible and the bytes still add up; filling part of a gap leaves the rest."""
    load(table, "a", 0, 5)
    at = Position(0, 150)
    gap = Change(tuple(record_gap(table, PART, (50, 100), "b", "2011-06-12")))
    files = written(table, "b", 100, 5)
    table.commit(expected={PART: 50}, following={PART: at}, files=files, dead=gap, notes={"load": "b", "kind": "load"})
    assert [(gap.start, gap.end) for gap in gaps_of(table)] == [(50, 100)]
    compact(table)
    filling = fill_gaps(table, {PART: (60, 80)}, "c")
    files = written(table, "c", 60, 2)
    notes = {"load": "c", "kind": "backfill"}
    table.commit(expected={PART: 150}, following={PART: at}, files=files, dead=filling, notes=notes)
    assert [(gap.start, gap.end) for gap in gaps_of(table)] == [(50, 60), (80, 100)]
    columns = ["koffset", "knext"]
    rows = pa.concat_tables([table.dataset().to_table(columns=columns), table.dead_rows().to_table(columns=columns)])
    assert pc.sum(pc.subtract(rows.column("knext"), rows.column("koffset"))).as_py() == 150


def test_new_columns_are_null_in_old_rows(table: TopicTable) -> None:
    """A field that is added needs no rewriting (schema evolution)."""
    load(table, "a", 0, 2)
    columns = pa.schema([("country", pa.string())])
    assert table.add_columns(columns) == ["country"]
    assert table.add_columns(columns) == []
    files = written(table, "b", 20, 2, columns)
    at = Position(0, 40)
    table.commit(expected={PART: 20}, following={PART: at}, files=files, notes={"load": "b", "kind": "load"})
    assert table.dataset().to_table(columns=["country"]).num_rows == 4


def test_two_nights_do_not_overlap(tmp_path: Path) -> None:
    """The second one is told who holds the lock; when that one ends, or dies, the lock is free."""
    place = Warehouse(str(tmp_path))
    with locked(place, "etl run"):
        assert "etl run" in str(lock_holder(place))
        with pytest.raises(LoadLocked, match="etl run"), locked(place, "another"):
            pass
    assert lock_holder(place) is None
    with locked(place, "another"):
        pass


@pytest.mark.parametrize("name", ["_etl", "..", "a/b", ""])
def test_a_topic_name_cannot_leave_the_warehouse(tmp_path: Path, name: str) -> None:
    """Tables are directories: names that are not legal topics are refused."""
    with pytest.raises(WarehouseError):
        Warehouse(str(tmp_path)).table(name)


def test_a_filter_by_any_column_finds_its_rows(tmp_path: Path) -> None:
    """Statistics in the table's log never make another reader pass over rows that match its filter."""
    table = Warehouse(str(tmp_path)).table("clicks")
    table.create(pa.schema([("page", pa.string())]), by_hour=False)
    schema = file_schema(pa.schema([("page", pa.string())]))
    files = SplitFiles(table.uri, "load-0-0-0-0", schema)
    row = {"kbroker": 0, "kpart": 0, "koffset": 0, "kidx": 0, "knext": 15, "page": "/home"}
    files.add({"dt": "2011-06-12"}, pa.Table.from_pylist([row], schema=schema))
    table.commit(
        expected={}, following={PART: Position(0, 15)}, files=files.close(), notes={"load": "load", "kind": "load"}
    )
    dataset = DeltaTable(table.uri).to_pyarrow_dataset()

    assert dataset.to_table(filter=pc.field("page") == "/home").num_rows == 1
    assert dataset.to_table(filter=pc.field("knext") > 0).num_rows == 1


def test_offsets_survive_a_cleaned_up_log(table: TopicTable) -> None:
    """Another tool may remove old log entries after a checkpoint: offsets are still known, nothing is loaded twice."""
    load(table, "a", 0, 5)
    table.add_columns(pa.schema([("country", pa.string())]))
    table.open().create_checkpoint()
    for entry in sorted(Path(table.uri, "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()
    assert not list(table.notes())
    assert table.state().offsets == {PART: 50}
    with pytest.raises(LoadSuperseded):
        load(table, "again", 0, 5)
    load(table, "b", 50, 5)
    assert offsets_in(table) == list(range(0, 100, 10))


def test_a_file_uri_is_the_same_warehouse(tmp_path: Path) -> None:
    """file:// and a path name one place, so plans and locks agree."""
    spaced = tmp_path / "ware house"
    assert Warehouse(spaced.as_uri()).root == Warehouse(f"{spaced}/").root == str(spaced)


@pytest.mark.parametrize("uri", ["ftp://host/warehouse", "webhdfs://host:9870/warehouse", "http://host/x", "s3://"])
def test_a_place_that_cannot_hold_a_warehouse_is_refused(uri: str) -> None:
    """Where no log entry can be created only-if-absent, exactly once cannot be kept: refused, saying what to do."""
    with pytest.raises(WarehouseError, match=r"(Mount it as a directory|a warehouse is like)"):
        Warehouse(uri)


def test_what_a_remote_store_says_becomes_one_sentence(tmp_path: Path) -> None:
    """The library speaks in many coloured lines; a local error is left alone."""
    said = OSError("Generic S3 error\n  \x1b[31m↳\x1b[0m error sending request\n   \x1b[31m↳\x1b[0m refused\n")
    with (
        pytest.raises(WarehouseError, match=r"x cannot be reached: refused \(Generic S3 error\)"),
        reaching("s3://l/x"),
    ):
        raise said
    with pytest.raises(OSError, match="Generic"), reaching(str(tmp_path)):
        raise said
