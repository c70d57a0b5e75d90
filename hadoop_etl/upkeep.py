"""Look after a table: go back to an earlier version, join small files, remove what nobody needs.

Paper: §3.1 ("a consumer can deliberately rewind back to an old offset and re-consume").

Rewind is one commit that removes later files, brings back earlier ones and lowers the offsets together. Delta's own
restore would bring the files back and leave the offsets: the next load would then skip what it should load again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, WriterProperties

from hadoop_etl.errors import CannotRewind, WarehouseError
from hadoop_etl.events import Rewound
from hadoop_etl.files import WrittenFile
from hadoop_etl.ledger import Position
from hadoop_etl.plan import new_load
from hadoop_etl.quarantine import Change
from hadoop_etl.storage import exists
from hadoop_etl.warehouse import NO_CHANGE, TopicTable
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.events import Journal
from kafka2011.types import BrokerPartition

TARGET_SIZE = 256 << 20
KEEP_HOURS = 168


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """What a rewind would do."""

    topic: str
    to_version: int
    from_version: int
    positions: dict[BrokerPartition, tuple[Position, Position]] = field(default_factory=dict)
    """Partition to (now, then)."""
    removed: tuple[WrittenFile, ...] = ()
    restored: tuple[WrittenFile, ...] = ()
    dead: Change = NO_CHANGE


def plan_rewind(table: TopicTable, to_version: int) -> RewindPlan:
    """Say what would change; refuse a version whose files are gone."""
    now = table.state()
    if not 0 <= to_version <= now.version:
        raise CannotRewind(f"{table.topic} has versions 0 to {now.version}; there is no version {to_version}")
    try:
        then = table.state(to_version)
        removed, restored = _difference(table.files(), table.files(to_version))
        dead = _difference(table.dead_files(), table.dead_files(to_version))
    except WarehouseError as error:
        raise CannotRewind(f"{error}; choose a later version") from error
    uris = [f"{table.uri}/{file.path}" for file in restored]
    uris += [f"{table.quarantine.uri}/{file.path}" for file in dead[1]]
    gone = [uri for uri in uris if not exists(uri)]
    if gone:
        raise CannotRewind(
            f"{table.topic}: {len(gone)} files of version {to_version} were removed by vacuum (first: {gone[0]}); "
            "choose a later version, or load from the brokers into a new warehouse"
        )
    positions = {part: (at, _position(at, then.positions.get(part))) for part, at in now.positions.items()}
    change = Change(dead[1], dead[0], seen=now.dead)
    return RewindPlan(table.topic, to_version, now.version, positions, removed, restored, change)


def rewind(table: TopicTable, plan: RewindPlan, journal: Journal | None = None) -> int:
    """Do what ``plan_rewind`` said, in one commit; returns the new version."""
    version = table.commit(
        expected={part: now.next for part, (now, _) in plan.positions.items()},
        following={part: then for part, (_, then) in plan.positions.items()},
        files=plan.restored,
        removed=plan.removed,
        dead=plan.dead,
        notes={"load": f"rewind-{_name()}", "kind": "rewind", "to_version": plan.to_version},
    )
    (journal or Journal()).emit(
        Rewound(
            topic=table.topic,
            to_version=plan.to_version,
            version=version,
            files_removed=len(plan.removed),
            files_restored=len(plan.restored),
        )
    )
    return version


def compact(table: TopicTable, target_size: int = TARGET_SIZE) -> dict[str, Any]:
    """Join small files, day by day, of the table and of its quarantine, in commits that change no row."""
    table.settle()
    delta = table.open()
    metrics = delta.optimize.compact(
        target_size=target_size,
        writer_properties=WriterProperties(compression="ZSTD", compression_level=1),
        commit_properties=CommitProperties(custom_metadata={"kafka2011.kind": "compact"}),
    )
    dead = _joined(table, target_size)
    if dead:
        table.commit(expected={}, following={}, dead=dead, notes={"load": f"compact-{_name()}", "kind": "compact"})
    return {
        "topic": table.topic,
        "files_added": metrics["numFilesAdded"] + len(dead.added),
        "files_removed": metrics["numFilesRemoved"] + len(dead.removed),
    }


def vacuum(table: TopicTable, keep_hours: int, dry_run: bool) -> list[str]:
    """Remove files no version of the last ``keep_hours`` names, also those of loads that died. Returns them."""
    table.settle()
    removed: list[str] = []
    for delta in (table.open(), table.quarantine.open()):
        removed += delta.vacuum(
            retention_hours=keep_hours, dry_run=dry_run, enforce_retention_duration=False, full=True
        )
    return removed


def _difference(
    now: list[WrittenFile], then: list[WrittenFile]
) -> tuple[tuple[WrittenFile, ...], tuple[WrittenFile, ...]]:
    """The files to remove and those to bring back."""
    here, there = {file.path for file in now}, {file.path for file in then}
    return tuple(f for f in now if f.path not in there), tuple(f for f in then if f.path not in here)


def _position(now: Position, then: Position | None) -> Position:
    """Where a partition stands after the rewind. Its log is still the same one, unless no row of it is left.

    A partition the old version did not know cannot be forgotten: it begins again where its rows began, so that a
    retention gap would be noticed.
    """
    if then is None or then.next == then.first:
        start = now.first if then is None else then.next
        return Position(start, start)
    return Position(then.first, then.next, now.mark)


def _joined(table: TopicTable, target_size: int) -> Change:
    """Small files of the quarantine, joined by days."""
    number, name = table.state().dead, _name()
    added, removed = list[WrittenFile](), list[WrittenFile]()
    days: dict[str, list[WrittenFile]] = {}
    for file in table.dead_files():
        if file.size < target_size // 2:
            days.setdefault(file.keys["dt"], []).append(file)
    for day, files in days.items():
        if len(files) > 1:
            rows = pa.concat_tables([table.quarantine.rows(file) for file in files])
            added += table.quarantine.write(rows, day, f"compact-{name}")
            removed += files
    return Change(tuple(added), tuple(removed), seen=number)


def _name() -> str:
    """A name no other file or commit has."""
    return new_load(SYSTEM_CLOCK.wall_ms())
