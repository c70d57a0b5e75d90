"""The warehouse: one Delta table per topic, whose log holds data and offsets together.

Paper: §4 (the load stores data and offsets so that a retry neither loses nor duplicates).

One commit is one new file in ``_delta_log``, created only if absent. It names the data files, says how far each
partition is loaded (``ledger``) and what becomes of the quarantine beside the table (``quarantine``). So data and
offsets cannot differ, and of two commits that were made from the same state the second one is refused.

Readers: ``TopicTable.dataset`` (Arrow, DuckDB, pandas, polars), ``reading.register`` (Spark SQL), any other that
knows Delta. A listing of the directory is wrong: it also shows files of loads that never committed.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from pyarrow import fs
from pyarrow.dataset import Dataset

from hadoop_etl.actions import CHECKPOINT_EVERY, entry_uri, files_of, is_newest, make_durable, write_entry
from hadoop_etl.columns import BOUNDED, DEAD, partition_columns, table_schema
from hadoop_etl.errors import LoadSuperseded, WarehouseError
from hadoop_etl.files import WrittenFile
from hadoop_etl.ledger import Offsets, Position, TableState, as_dict, from_notes, from_transactions, transactions
from hadoop_etl.quarantine import Change, Quarantine
from hadoop_etl.storage import absolute, exists, local_path, names, plain, reaching, read_text
from kafka2011.failpoints import fail_point
from kafka2011.types import BrokerPartition, is_legal_name

META = "kafka2011"
"""The key of our own notes in a commit: load, kind, format, and where the table stands."""

PROPERTIES = {"delta.logRetentionDuration": "interval 30 days", "delta.checkpointInterval": str(CHECKPOINT_EVERY)}
"""Opening a table costs what came after its last checkpoint; what is older than a month, and in a checkpoint, goes."""
NO_CHANGE = Change()


class Warehouse:
    """A directory of topic tables. Thread: any."""

    def __init__(self, root: str) -> None:
        self.root = absolute(root)
        self._tables: dict[str, TopicTable] = {}

    def table(self, topic: str) -> TopicTable:
        """The table of a topic, which may not exist yet; the same object each time."""
        if not is_legal_name(topic) or topic.startswith("_"):
            raise WarehouseError(f"{topic!r} cannot be a table: a legal name without a leading underscore is needed")
        if topic.endswith(DEAD):
            raise WarehouseError(f"{topic!r} cannot be a table: names that end with {DEAD} are those of quarantines")
        return self._tables.setdefault(topic, TopicTable(f"{self.root}/{topic}", topic))

    def topics(self) -> list[str]:
        """The topics that have a table."""
        legal = (n for n in names(self.root) if is_legal_name(n) and not n.startswith("_") and not n.endswith(DEAD))
        return [name for name in legal if exists(f"{self.root}/{name}/_delta_log")]


class TopicTable:
    """One topic's Delta table. Thread: one per object; any number of processes."""

    def __init__(self, uri: str, topic: str) -> None:
        self.uri, self.topic = uri, topic
        self.quarantine = Quarantine(uri, topic)
        self._seen: DeltaTable | None = None

    def open(self, version: int | None = None) -> DeltaTable:
        """The Delta table, now or as of a version; one of an older edition is refused."""
        table = self.open_any(version)
        if not is_current(table):
            raise WarehouseError(
                f"{self.topic} {'' if version is None else f'version {version} '}is of an older edition, with its dead "
                "rows inside; 'kafka2011 etl migrate' moves it over and keeps every row and offset"
            )
        return table

    def open_any(self, version: int | None = None) -> DeltaTable:
        """The Delta table of whichever edition."""
        try:
            with reaching(self.uri):
                return DeltaTable(self.uri, version=version)
        except TableNotFoundError:
            raise WarehouseError(f"there is no table for {self.topic} at {self.uri}; load the topic first") from None
        except DeltaError as error:
            what = self.uri if version is None else f"version {version} of {self.topic}"
            raise WarehouseError(f"{what} cannot be read: {plain(error)}") from error

    def exists(self) -> bool:
        """Tell whether the topic was ever loaded."""
        return exists(f"{self.uri}/_delta_log")

    def dataset(self, version: int | None = None) -> Dataset:
        """All rows, now or as of a version, as an Arrow dataset."""
        root = local_path(self.uri)
        # Arrow's own file system where it can: reading through delta-rs's would call back into Python for each block.
        system = None if root is None else fs.SubTreeFileSystem(str(root), fs.LocalFileSystem())
        return self.open(version).to_pyarrow_dataset(filesystem=system)

    def files(self, version: int | None = None) -> list[WrittenFile]:
        """The table's data files."""
        return files_of(self.open(version))

    def dead_files(self, version: int | None = None) -> list[WrittenFile]:
        """The quarantine's files as this table's commits decided them, followed yet or not."""
        state = self.state(version)
        followed = self.quarantine.followed(state.dead)
        files = self.quarantine.files(followed)
        for _, change in self._changes(followed, state):
            files = change.on(files)
        return files

    def dead_rows(self, version: int | None = None) -> Dataset:
        """What could not be read, and recorded gaps, now or as of a version: with ``dataset`` every message, once."""
        return self.quarantine.dataset(self.dead_files(version))

    def create(self, event_columns: pa.Schema, by_hour: bool) -> None:
        """Make the table and its quarantine, empty, if there are none; two loaders may both try."""
        if self._seen is not None:
            return  # delta-rs would read the whole table to find that it is there
        self.quarantine.create(PROPERTIES)
        DeltaTable.create(
            self.uri,
            schema=table_schema(event_columns, by_hour),
            partition_by=partition_columns(by_hour),
            mode="ignore",
            configuration={**PROPERTIES, "delta.dataSkippingStatsColumns": ",".join(BOUNDED)},
            description=f"topic {self.topic}, loaded by kafka2011 etl",
        )

    def state(self, version: int | None = None) -> TableState:
        """Where the table stands, now or as of a version; version -1 and nothing else if there is no table."""
        if version is None and not self.exists():
            return TableState(-1)
        return self._state_of(self._newest() if version is None else self.open(version))

    def _newest(self) -> DeltaTable:
        """The table now. What is known of it is brought up to date: opening it anew costs several times as much.

        Whoever commits must do so from the version its state was read from: between the two nobody may call this.
        """
        if self._seen is None:
            self._seen = self.open()
        elif not is_newest(self.uri, self._seen.version()):
            with reaching(self.uri):
                self._seen.update_incremental()
        return self._seen

    def _known(self) -> DeltaTable:
        """The table as it was last seen."""
        return self._newest() if self._seen is None else self._seen

    def columns(self) -> pa.Schema:
        """All columns of the table."""
        return pa.schema(self._newest().schema().to_arrow())

    def by_hour(self) -> bool:
        """Tell whether the table is filed by hours below days; that never changes."""
        return "hr" in self._known().metadata().partition_columns

    def add_columns(self, event_columns: pa.Schema) -> list[str]:
        """Add the columns the table lacks; rows loaded before have null there. Returns their names."""
        # Columns are only ever added, so those that were there before are still there.
        known = set(pa.schema(self._known().schema().to_arrow()).names)
        if {column.name for column in event_columns} <= known:
            return []
        known = set(self.columns().names)
        new = [column for column in event_columns if column.name not in known]
        if new:
            fields = DeltaSchema.from_arrow(pa.schema(new)).fields
            try:
                self.open().alter.add_columns(fields)
            except CommitFailedError:
                # Another load added columns at this moment; what is still missing now is a real failure.
                if not {column.name for column in new} <= set(self.columns().names):
                    raise
        return [column.name for column in new]

    def commit(
        self,
        *,
        expected: Offsets,
        following: Mapping[BrokerPartition, Position],
        files: Iterable[WrittenFile] = (),
        removed: Iterable[WrittenFile] = (),
        dead: Change = NO_CHANGE,
        notes: Mapping[str, Any],
    ) -> int:
        """Publish files, offsets and the change of the quarantine in one entry of the log; returns the new version.

        Refused with LoadSuperseded, and nothing changed, if the table's offsets are not ``expected`` any more.
        """
        table = self._newest()
        found = self._state_of(table)
        self._settle(found)
        moved = {part: found.offsets.get(part) for part in expected if found.offsets.get(part) != expected[part]}
        begun = {part: found.offsets[part] for part in following if part not in expected and part in found.offsets}
        if moved or begun or dead.seen not in (None, found.dead):
            raise self._superseded(moved | begun)
        state = found.after(following, bool(dead))
        own = {"format": found.notes.get("format"), **notes, "state": as_dict(state), "commit": uuid.uuid4().hex}
        if dead:
            own["dead"] = dead.as_dict(state.dead)
        said = transactions(self.topic, found, state)
        fail_point("etl.commit.before")
        try:
            write_entry(table, files, removed, said, {META: json.dumps(own)})
        except CommitFailedError as error:
            raise self._superseded({}) from error
        except (DeltaError, OSError) as error:
            raise WarehouseError(
                f"the log of {self.topic} could not be written: {plain(error)}; 'etl status' says whether it was, "
                "run again"
            ) from error
        later = (v for v in count(found.version + 1) for noted in self._notes_at(v) if noted["commit"] == own["commit"])
        version = next(later)
        make_durable(self.uri, version)
        fail_point("etl.commit.after")
        if dead:
            self._settle(replace(state, version=version))
        return version

    def settle(self) -> None:
        """Let the quarantine follow what this table's commits decided; nothing to do unless something crashed."""
        if self.exists():
            self._settle(self.state())

    def is_settled(self) -> bool:
        """Tell whether the quarantine has followed everything this table's commits decided."""
        decided = self.state().dead
        return self.quarantine.followed(decided) == decided

    def _settle(self, state: TableState) -> None:
        for number, change in self._changes(self.quarantine.followed(state.dead), state):
            fail_point("etl.dead.before")
            self.quarantine.follow(number, change)
            fail_point("etl.dead.after")

    def notes(self, version: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """Version and notes of each commit of ours up to ``version``, newest first, read from the log itself."""
        if version is None and not self.exists():
            return
        for number in range(self._newest().version() if version is None else version, -1, -1):
            try:
                yield from ((number, noted) for noted in self._notes_at(number))
            except FileNotFoundError:
                return  # cleaned up; older ones are gone too

    def _notes_at(self, version: int) -> Iterator[dict[str, Any]]:
        for line in read_text(entry_uri(self.uri, version)).splitlines():
            info = json.loads(line).get("commitInfo")
            if info and META in info:
                yield {**json.loads(info[META]), "committed_ms": info["timestamp"]}

    def published(self, load: str, since: int = -1) -> int | None:
        """The version after ``since`` in which ``load`` was published, unless a rewind took it back."""
        visible = None
        for version, noted in self.notes():
            if version <= since:
                return None
            if visible is not None and version > visible:
                continue  # what a rewind jumped over
            if noted["load"] == load:
                return version
            visible = noted["to_version"] if noted["kind"] == "rewind" else None
        return None

    def _state_of(self, table: DeltaTable) -> TableState:
        version = table.version()
        notes = next((noted for _, noted in self.notes(version)), None)
        if notes is not None:
            return from_notes(version, notes)
        # No load yet, or another tool cleaned the log up: then the checkpoint still has the transactions.
        return from_transactions(self.topic, version, table.transaction_version)

    def _changes(self, after: int, state: TableState) -> list[tuple[int, Change]]:
        """The changes of the quarantine that led to this state, later than number ``after``, oldest first."""
        found: dict[int, Change] = {}
        upto = state.dead
        if upto > after:
            for _, noted in self.notes(state.version):
                change = noted.get("dead")
                if change is not None and change["number"] <= upto:
                    if change["number"] <= after:
                        break
                    found[change["number"]] = Change.from_dict(change)
                    if change["number"] == after + 1:
                        break
        missing = [number for number in range(after + 1, upto + 1) if number not in found]
        if missing:
            raise WarehouseError(
                f"the log of {self.topic} lacks the entries that decided changes {missing[0]} to {missing[-1]} of its "
                "quarantine; another tool removed them. Restore the table's _delta_log from a copy"
            )
        return sorted(found.items())

    def _superseded(self, moved: Mapping[BrokerPartition, int | None]) -> LoadSuperseded:
        where = ", ".join(f"{part} is now at {offset}" for part, offset in sorted(moved.items()))
        return LoadSuperseded(
            f"another load of {self.topic} committed while this one ran{f' ({where})' if where else ''}; "
            "nothing of this one was published. Run it again: it will begin where the other ended"
        )


def is_current(table: DeltaTable) -> bool:
    """Tell whether a table is of this edition: its days are dates, its dead rows are in the quarantine."""
    return bool(pa.types.is_date(pa.schema(table.schema().to_arrow()).field("dt").type))
