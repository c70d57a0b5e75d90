"""Look after a table: go back to an earlier version, join small files, remove what nobody needs.

Paper: §3.1 ("a consumer can deliberately rewind back to an old offset and re-consume").

Rewind is one commit that removes later files, brings back earlier ones and lowers the offsets together. Delta's own
restore would bring the files back and leave the offsets: the next load would then skip what it should load again.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, WriterProperties
from deltalake.transaction import AddAction, RemoveAction

from hadoop_etl.columns import GAP_DAY
from hadoop_etl.errors import CannotRewind
from hadoop_etl.events import Rewound
from hadoop_etl.files import place_of
from hadoop_etl.storage import exists
from hadoop_etl.warehouse import TopicTable
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
    offsets: dict[BrokerPartition, tuple[int, int]] = field(default_factory=dict)
    """Partition to (now, then)."""
    removed: tuple[dict[str, Any], ...] = ()
    restored: tuple[dict[str, Any], ...] = ()


def plan_rewind(table: TopicTable, to_version: int) -> RewindPlan:
    """Say what would change; refuse a version whose files are gone."""
    now, then = table.state(), None
    if 0 <= to_version <= now.version:
        then = table.state(to_version)
    if then is None:
        raise CannotRewind(f"{table.topic} has versions 0 to {now.version}; there is no version {to_version}")
    current = {action["path"]: action for action in _actions(table, None)}
    wanted = {action["path"]: action for action in _actions(table, to_version)}
    restored = [wanted[path] for path in sorted(wanted.keys() - current.keys())]
    gone = [action["path"] for action in restored if not exists(f"{table.uri}/{action['path']}")]
    if gone:
        raise CannotRewind(
            f"{table.topic}: {len(gone)} files of version {to_version} were removed by vacuum (first: {gone[0]}); "
            "choose a later version, or load from the brokers into a new warehouse"
        )
    # A partition the old version did not know begins again at the first offset of its first file, i.e. at nothing:
    # its offset cannot be unset, so it is lowered to where its rows began.
    starts = _first_offsets(current.values())
    offsets = {part: (at, then.offsets.get(part, starts.get(part, at))) for part, at in now.offsets.items()}
    removed = [current[path] for path in sorted(current.keys() - wanted.keys())]
    return RewindPlan(table.topic, to_version, now.version, offsets, tuple(removed), tuple(restored))


def rewind(table: TopicTable, plan: RewindPlan, journal: Journal | None = None) -> int:
    """Do what ``plan_rewind`` said, in one commit; returns the new version."""
    moment = time.time_ns() // 1_000_000
    version = table.commit(
        expected={part: now for part, (now, _) in plan.offsets.items()},
        following={part: then for part, (_, then) in plan.offsets.items()},
        removed=[RemoveAction(a["path"], True, moment, a["size_bytes"], _keys(a)) for a in plan.removed],
        restored=[AddAction(a["path"], a["size_bytes"], _keys(a), moment, True, _stats(a)) for a in plan.restored],
        notes={"load": f"rewind-{moment}", "kind": "rewind", "to_version": plan.to_version},
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
    """Join small files, day by day, in a commit that changes no row. Gaps keep their own files for a backfill."""
    delta = table.open()
    metrics = delta.optimize.compact(
        partition_filters=[("dt", "!=", GAP_DAY)],
        target_size=target_size,
        writer_properties=WriterProperties(compression="ZSTD", compression_level=1),
        commit_properties=CommitProperties(custom_metadata={"kafka2011.kind": "compact"}),
    )
    return {"topic": table.topic, "files_added": metrics["numFilesAdded"], "files_removed": metrics["numFilesRemoved"]}


def vacuum(table: TopicTable, keep_hours: int, dry_run: bool) -> list[str]:
    """Remove files no version of the last ``keep_hours`` names, also those of loads that died. Returns them."""
    delta = table.open()
    removed: list[str] = delta.vacuum(
        retention_hours=keep_hours, dry_run=dry_run, enforce_retention_duration=False, full=True
    )
    return removed


def _actions(table: TopicTable, version: int | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(table.open(version).get_add_actions(flatten=True)).to_pylist()
    return found


def _first_offsets(actions: Any) -> dict[BrokerPartition, int]:
    first: dict[BrokerPartition, int] = {}
    for place in (place_of(action["path"]) for action in actions):
        if place is not None:
            part, start = place
            first[part] = min(first.get(part, start), start)
    return first


def _keys(action: dict[str, Any]) -> dict[str, str | None]:
    return {name.partition(".")[2]: value for name, value in action.items() if name.startswith("partition.")}


def _stats(action: dict[str, Any]) -> str:
    """The statistics our files have: their count (see ``files.WrittenFile.stats``)."""
    return json.dumps({"numRecords": action["num_records"]})


