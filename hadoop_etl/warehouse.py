"""The warehouse: one Delta table per topic, whose log holds data and offsets together.

Paper: §4 (the load stores data and offsets so that a retry neither loses nor duplicates).

One commit is one new file in ``_delta_log``, created only if absent. It names the data files and, for each partition,
one application transaction ``etl/<topic>/<broker>-<partition>`` whose version is the next offset to load. So data and
offsets cannot differ, and of two loads that began at the same offsets the second one's commit is refused.

Readers: ``TopicTable.dataset`` (Arrow, DuckDB, pandas, polars), ``reading.register`` (Spark SQL), any other that
knows Delta. A listing of the directory is wrong: it also shows files of loads that never committed.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import fs
from pyarrow.dataset import Dataset

from hadoop_etl.columns import partition_columns, table_schema
from hadoop_etl.errors import LoadSuperseded, WarehouseError
from hadoop_etl.files import WrittenFile
from hadoop_etl.storage import absolute, exists, local_path, names, plain, reaching, read_text, sync_directory
from kafka2011.failpoints import fail_point
from kafka2011.types import BrokerPartition, is_legal_name

Offsets = Mapping[BrokerPartition, int]

META = "kafka2011"
"""The key of our own notes in a commit: load, partitions, format. Never the truth about data or offsets."""

_FOREVER = {"delta.logRetentionDuration": "interval 3650 days", "delta.checkpointInterval": "50"}


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one version: where each partition goes on, and what the last load noted."""

    version: int
    offsets: dict[BrokerPartition, int] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)


class Warehouse:
    """A directory of topic tables. Thread: any."""

    def __init__(self, root: str) -> None:
        self.root = absolute(root)

    def table(self, topic: str) -> TopicTable:
        """The table of a topic, which may not exist yet."""
        if not is_legal_name(topic) or topic.startswith("_"):
            raise WarehouseError(f"{topic!r} cannot be a table: a legal name without a leading underscore is needed")
        return TopicTable(f"{self.root}/{topic}", topic)

    def topics(self) -> list[str]:
        """The topics that have a table."""
        return [
            name
            for name in names(self.root)
            if is_legal_name(name) and not name.startswith("_") and exists(f"{self.root}/{name}/_delta_log")
        ]


class TopicTable:
    """One topic's Delta table. Thread: one per object; any number of processes."""

    def __init__(self, uri: str, topic: str) -> None:
        self.uri, self.topic = uri, topic

    def open(self, version: int | None = None) -> DeltaTable:
        """The Delta table, now or as of a version."""
        try:
            with reaching(self.uri):
                return DeltaTable(self.uri, version=version)
        except TableNotFoundError:
            raise WarehouseError(f"there is no table for {self.topic} at {self.uri}; load the topic first") from None

    def exists(self) -> bool:
        """Tell whether the topic was ever loaded."""
        return exists(f"{self.uri}/_delta_log")

    def dataset(self, version: int | None = None) -> Dataset:
        """All rows, now or as of a version, as an Arrow dataset."""
        root = local_path(self.uri)
        # Arrow's own file system where it can: reading through delta-rs's would call back into Python for each block.
        system = None if root is None else fs.SubTreeFileSystem(str(root), fs.LocalFileSystem())
        return self.open(version).to_pyarrow_dataset(filesystem=system)

    def create(self, event_columns: pa.Schema, by_hour: bool) -> None:
        """Make the table, empty, if there is none; two loaders may both try."""
        DeltaTable.create(
            self.uri,
            schema=table_schema(event_columns, by_hour),
            partition_by=partition_columns(by_hour),
            mode="ignore",
            configuration=_FOREVER,
            description=f"topic {self.topic}, loaded by kafka2011 etl",
        )

    def state(self, version: int | None = None) -> TableState:
        """Offsets and notes, now or as of a version; version -1 and nothing else if there is no table."""
        if version is None and not self.exists():
            return TableState(-1)
        return self._state_of(self.open(version))

    def columns(self) -> pa.Schema:
        """All columns of the table."""
        return pa.schema(self.open().schema().to_arrow())

    def by_hour(self) -> bool:
        """Tell whether the table is filed by hours below days."""
        return "hr" in self.open().metadata().partition_columns

    def add_columns(self, event_columns: pa.Schema) -> list[str]:
        """Add the columns the table lacks; rows loaded before have null there. Returns their names."""
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
        following: Offsets,
        files: Iterable[WrittenFile] = (),
        removed: Sequence[RemoveAction] = (),
        restored: Sequence[AddAction] = (),
        notes: Mapping[str, Any],
    ) -> int:
        """Publish files and offsets in one entry of the log; returns the new version.

        Refused with LoadSuperseded, and nothing changed, if the table's offsets are not ``expected`` any more.
        """
        table = self.open()
        found = self._state_of(table)
        moved = {part: found.offsets.get(part) for part in expected if found.offsets.get(part) != expected[part]}
        begun = {part: found.offsets[part] for part in following if part not in expected and part in found.offsets}
        if moved or begun:
            raise self._superseded(moved | begun)
        adds = [
            AddAction(file.path, file.size, file.keys, file.modified_ms, True, file.stats()) for file in files
        ]
        known = sorted(str(part) for part in {*found.offsets, *following})
        own = {"format": found.notes.get("format"), **notes, "partitions": known, "commit": uuid.uuid4().hex}
        transactions = [Transaction(self._app_id(part), offset) for part, offset in following.items()]
        fail_point("etl.commit.before")
        try:
            table.create_write_transaction(
                [*adds, *restored, *removed],
                "append",
                table.schema(),
                table.metadata().partition_columns,
                commit_properties=CommitProperties(
                    custom_metadata={META: json.dumps(own)}, app_transactions=transactions
                ),
            )
        except CommitFailedError as error:
            raise self._superseded({}) from error
        except (DeltaError, OSError) as error:
            raise WarehouseError(
                f"the log of {self.topic} could not be written: {plain(error)}; 'etl status' says whether it was, "
                "run again"
            ) from error
        version = next(v for v, noted in self.notes() if noted["commit"] == own["commit"])
        self._make_durable(version)
        fail_point("etl.commit.after")
        return version

    def notes(self, version: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """Version and notes of each commit of ours up to ``version``, newest first, read from the log itself."""
        if version is None and not self.exists():
            return
        for number in range(self.open().version() if version is None else version, -1, -1):
            try:
                lines = read_text(f"{self.uri}/_delta_log/{number:020}.json").splitlines()
            except FileNotFoundError:
                return  # cleaned up by another tool; older ones are gone too
            for info in (json.loads(line).get("commitInfo") for line in lines):
                if info and META in info:
                    yield number, {**json.loads(info[META]), "committed_ms": info["timestamp"]}

    def first_offset(self, part: BrokerPartition) -> int | None:
        """The first offset of a partition that has a row, from the data itself."""
        wanted = (pc.field("kbroker") == part.broker_id) & (pc.field("kpart") == part.partition)
        rows = self.dataset().to_table(columns=["koffset"], filter=wanted)
        first: int | None = pc.min(rows.column("koffset")).as_py()
        return first

    def published(self, load: str) -> int | None:
        """The version in which ``load`` was published, unless a rewind took it back."""
        visible = None
        for version, noted in self.notes():
            if noted["load"] == load:
                return version if visible is None or version <= visible else None
            if noted["kind"] == "rewind":
                visible = noted["to_version"] if visible is None else min(visible, noted["to_version"])
        return None

    def _state_of(self, table: DeltaTable) -> TableState:
        version = table.version()
        notes = next((noted for _, noted in self.notes(version)), {})
        if "partitions" in notes:
            parts = [BrokerPartition.parse(text) for text in notes["partitions"]]
        else:
            # No load yet, or another tool cleaned the log up: the rows themselves tell which partitions there are.
            rows = self.dataset(version).to_table(columns=["kbroker", "kpart"])
            found_parts = rows.group_by(["kbroker", "kpart"]).aggregate([]).to_pylist()
            parts = [BrokerPartition(row["kbroker"], row["kpart"]) for row in found_parts]
        found = {part: table.transaction_version(self._app_id(part)) for part in parts}
        offsets = {part: offset for part, offset in found.items() if offset is not None}
        return TableState(version, offsets, notes)

    def _app_id(self, part: BrokerPartition) -> str:
        return f"etl/{self.topic}/{part}"

    def _superseded(self, moved: Mapping[BrokerPartition, int | None]) -> LoadSuperseded:
        where = ", ".join(f"{part} is now at {offset}" for part, offset in sorted(moved.items()))
        return LoadSuperseded(
            f"another load of {self.topic} committed while this one ran{f' ({where})' if where else ''}; "
            "nothing of this one was published. Run it again: it will begin where the other ended"
        )

    def _make_durable(self, version: int) -> None:
        """On this machine: the log entry survives a power cut from here on."""
        root = local_path(self.uri)
        if root is not None:
            entry = root / "_delta_log" / f"{version:020}.json"
            with open(entry, "rb") as file:
                os.fsync(file.fileno())
            sync_directory(entry.parent)
