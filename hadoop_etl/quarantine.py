"""The quarantine of a table: what could not be read, and what was deleted before it was loaded, in a table beside it.

Two Delta tables cannot share a commit, so only one of them decides: the commit of the topic's own table names the
change of the quarantine (files added and removed, numbered 1, 2, 3 …), and the quarantine follows, one commit per
change, each with its number as an application transaction.

    decided -> followed: right after the commit; after a crash, by the next command that changes the table

A change is never followed twice (its number is there) and none is left out (they are followed in order). Our own
readers (``TopicTable.dead_rows``) look at what is decided; any other reader of Delta sees what is followed.

Paper: §4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from hadoop_etl.actions import entry_uri, files_of, is_newest, make_durable, write_entry
from hadoop_etl.columns import BOUNDED, DEAD, DEAD_COLUMNS, key_columns, partition_columns
from hadoop_etl.errors import WarehouseError
from hadoop_etl.files import SplitFiles, WrittenFile
from hadoop_etl.storage import arrow_place, exists, plain, reaching

_COLUMNS = pa.schema([*key_columns(by_hour=False), *DEAD_COLUMNS])


@dataclass(frozen=True, slots=True)
class Change:
    """Files a commit adds to the quarantine and removes from it; ``seen`` is the change it was made after, if any."""

    added: tuple[WrittenFile, ...] = ()
    removed: tuple[WrittenFile, ...] = ()
    seen: int | None = None

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def as_dict(self, number: int) -> dict[str, Any]:
        """Ready for the notes of the commit that decides it."""
        return {
            "number": number,
            "added": [asdict(file) for file in self.added],
            "removed": [asdict(file) for file in self.removed],
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Change:
        """Read back what ``as_dict`` wrote."""
        return cls(
            tuple(WrittenFile(**file) for file in found["added"]),
            tuple(WrittenFile(**file) for file in found["removed"]),
        )

    def on(self, files: Sequence[WrittenFile]) -> list[WrittenFile]:
        """These files after the change."""
        gone = {file.path for file in self.removed}
        return [*(file for file in files if file.path not in gone), *self.added]


class Quarantine:
    """The sibling of one topic's table. Thread: one per object; any number of processes."""

    def __init__(self, table_uri: str, topic: str) -> None:
        self.uri, self.topic = f"{table_uri}{DEAD}", topic
        self._followed = 0
        self._seen: DeltaTable | None = None

    def create(self, properties: dict[str, str]) -> None:
        """Make it, empty, if there is none."""
        bounded = ",".join(name for name in BOUNDED if name in DEAD_COLUMNS.names)
        DeltaTable.create(
            self.uri,
            schema=_COLUMNS,
            partition_by=partition_columns(by_hour=False),
            mode="ignore",
            configuration={**properties, "delta.dataSkippingStatsColumns": bounded},
            description=f"messages of topic {self.topic} that could not be read, kept by kafka2011 etl",
        )

    def followed(self, decided: int) -> int:
        """The number of the last change that was followed, of the ``decided`` ones; it never grows less."""
        if self._followed < decided:
            self._followed = self._number(self._newest())
        return min(self._followed, decided)

    def files(self, number: int) -> list[WrittenFile]:
        """Its files after that change, which must have been followed."""
        if not number:
            return []
        table = self._newest()
        if self._number(table) != number:
            table = self.open(self._version(number, table.version()))
        return files_of(table)

    def follow(self, number: int, change: Change) -> None:
        """Make a change that the topic's own table decided; of two who follow at once one is enough."""
        table = self._newest()
        if self._number(table) >= number:
            return
        try:
            write_entry(table, change.added, change.removed, [(self._app_id, number)], {})
        except (DeltaError, OSError) as error:
            if self.followed(number) < number:
                raise WarehouseError(
                    f"the quarantine of {self.topic} could not be written: {plain(error)}; what was published stays, "
                    "and the quarantine follows when you run again"
                ) from error
        version = table.version()
        while exists(entry_uri(self.uri, version + 1)):
            version += 1
            make_durable(self.uri, version)
        self._followed = max(self._followed, number)

    def dataset(self, files: Sequence[WrittenFile]) -> pads.Dataset:
        """The rows of these files."""
        if not files:
            return pads.InMemoryDataset(_COLUMNS.empty_table())
        system, root = arrow_place(self.uri)
        return pads.dataset(
            [f"{root}/{file.path}" for file in files],
            schema=_COLUMNS,
            format="parquet",
            filesystem=system,
            partitioning=pads.partitioning(key_columns(by_hour=False), flavor="hive"),
            partition_base_dir=root,
        )

    def rows(self, file: WrittenFile) -> pa.Table:
        """The rows of one file, without the day it is filed under."""
        return self.dataset([file]).to_table(columns=DEAD_COLUMNS.names)

    def write(self, rows: pa.Table, day: str, stem: str) -> list[WrittenFile]:
        """Write rows to a new file, which nobody sees until a commit names it; none for no rows."""
        files = SplitFiles(self.uri, stem, DEAD_COLUMNS)
        if rows.num_rows:
            files.add({"dt": day}, rows)
        return files.close()

    def open(self, version: int | None = None) -> DeltaTable:
        """The Delta table, now or as of a version."""
        try:
            with reaching(self.uri):
                return DeltaTable(self.uri, version=version)
        except TableNotFoundError:
            raise WarehouseError(
                f"the quarantine of {self.topic} at {self.uri} is gone, and the table says that rows are in it; bring "
                "it back from a copy"
            ) from None

    def _newest(self) -> DeltaTable:
        """The Delta table now: what is known of it is brought up to date, which costs less than opening it."""
        if self._seen is None:
            self._seen = self.open()
        elif not is_newest(self.uri, self._seen.version()):
            with reaching(self.uri):
                self._seen.update_incremental()
        return self._seen

    @property
    def _app_id(self) -> str:
        return f"etl/{self.topic}/dead"

    def _number(self, table: DeltaTable) -> int:
        return table.transaction_version(self._app_id) or 0

    def _version(self, number: int, last: int) -> int:
        """The first version with that change, by halves: numbers grow with versions."""
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            try:
                found = self._number(self.open(middle))
            except DeltaError:
                found = 0  # its log entry was cleaned up: whatever it said is older than what is left
            low, high = (middle + 1, high) if found < number else (low, middle)
        return low
