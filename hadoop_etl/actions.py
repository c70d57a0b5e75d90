"""Files as a Delta log names them: read from it, and ready to be written into it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction

from hadoop_etl.files import WrittenFile, statistics
from hadoop_etl.storage import exists, local_path, sync_directory

CHECKPOINT_EVERY = 20
"""Entries of a log between two checkpoints."""


def files_of(table: DeltaTable) -> list[WrittenFile]:
    """The files of a table at its version, in order of their paths."""
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return sorted((_file(action) for action in actions), key=lambda file: file.path)


def _file(action: dict[str, Any]) -> WrittenFile:
    columns = [name.partition(".")[2] for name in action if name.startswith("null_count.")]
    bounds = {
        name: (action.get(f"min.{name}"), action.get(f"max.{name}"), action[f"null_count.{name}"])
        for name in columns
        if action[f"null_count.{name}"] is not None
    }
    keys = {n.partition(".")[2]: str(value) for n, value in action.items() if n.startswith("partition.")}
    return WrittenFile(
        path=action["path"],
        size=action["size_bytes"],
        rows=action["num_records"],
        keys=keys,
        modified_ms=action["modification_time"],
        stats=statistics(action["num_records"], bounds),
    )


def is_newest(uri: str, version: int) -> bool:
    """Tell whether a table has no later version than this one, without a look at its whole log.

    Versions have no holes, and old entries are removed oldest first: while this one is there, the next one would be.
    """
    return not exists(entry_uri(uri, version + 1)) and exists(entry_uri(uri, version))


def entry_uri(uri: str, version: int) -> str:
    """Where the log entry of a version is."""
    return f"{uri}/_delta_log/{version:020}.json"


def write_entry(
    table: DeltaTable,
    added: Iterable[WrittenFile],
    removed: Iterable[WrittenFile],
    transactions: Iterable[tuple[str, int]],
    notes: dict[str, str],
) -> None:
    """Write one log entry; raises what delta-rs raises."""
    moment = time.time_ns() // 1_000_000
    # Looking for entries that are too old means looking at all of them. None can have become so since the last
    # checkpoint but those before it, so it is done where a checkpoint is made, and not at every commit.
    makes_checkpoint = (table.version() + 2) % CHECKPOINT_EVERY == 0
    actions: Sequence[AddAction | RemoveAction] = [
        *(AddAction(f.path, f.size, f.keys, f.modified_ms, True, f.stats) for f in added),
        *(RemoveAction(f.path, True, moment, f.size, f.keys) for f in removed),
    ]
    table.create_write_transaction(
        list(actions),
        "append",
        table.schema(),
        table.metadata().partition_columns,
        commit_properties=CommitProperties(
            custom_metadata=notes,
            app_transactions=[Transaction(name, number) for name, number in transactions],
        ),
        post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=None if makes_checkpoint else False),
    )


def make_durable(uri: str, version: int) -> None:
    """On this machine: a table's log entry survives a power cut from here on."""
    entry = local_path(entry_uri(uri, version))
    if entry is not None:
        with open(entry, "rb") as file:
            os.fsync(file.fileno())
        sync_directory(entry.parent)
