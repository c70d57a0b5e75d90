"""Move a table of an older edition over: there dead rows and gaps were rows of the table itself, and days were text.

    old     dt is text: a day, ``__dead__`` or ``__gap__``; offsets in application transactions, one per partition
    new     dt is a date; dead rows and gaps are in the quarantine; the commit says where each partition stands

One commit does it: it takes the files of dead rows and gaps out, makes ``dt`` a date, names the quarantine's new files
and writes the state down. The other files stay as they are, and so do all offsets. A crash before it changes nothing,
one after it is settled by the next command. Versions before it can be read by no newer edition, and not rewound to.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError
from pyarrow.dataset import Dataset

from hadoop_etl.actions import make_durable
from hadoop_etl.columns import BOUNDED, DEAD_COLUMNS, FRAME, GAP, PAYLOAD, day_of, key_columns
from hadoop_etl.errors import LoadSuperseded
from hadoop_etl.files import SplitFiles, WrittenFile
from hadoop_etl.ledger import Position, TableState, as_dict, transactions
from hadoop_etl.plan import new_load
from hadoop_etl.quarantine import Change
from hadoop_etl.warehouse import META, PROPERTIES, TopicTable, is_current
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.failpoints import fail_point
from kafka2011.types import BrokerPartition

OLD_DEAD, OLD_GAP = "__dead__", "__gap__"

_OF_PAYLOADS = re.compile(
    r"not JSON|not a JSON object|no schema id|schema \d|a field has|event time out of range|the body is not a record"
    r"|\d+ bytes are left after a record"
)
"""How the reasons of messages began that were whole; all others had no whole message."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """What became of a table."""

    topic: str
    moved: int
    """Dead rows and gaps that are in the quarantine now."""
    version: int | None
    """None if there was nothing to do, or it was a dry run."""


def migrate(table: TopicTable, *, dry_run: bool = False, clock: Clock = SYSTEM_CLOCK) -> Migrated:
    """Move one table over; one of this edition is left as it is."""
    old = table.open_any()
    if is_current(old):
        return Migrated(table.topic, 0, None)
    whole = old.to_pyarrow_dataset()
    is_dead = pc.field("dt").isin([OLD_DEAD, OLD_GAP])
    if dry_run:
        return Migrated(table.topic, whole.count_rows(filter=is_dead), None)
    properties = {**PROPERTIES, "delta.dataSkippingStatsColumns": ",".join(BOUNDED)}
    table.quarantine.create(PROPERTIES)
    old.alter.set_table_properties(properties)
    old = table.open_any()
    load = new_load(clock.wall_ms())
    state = _state(table, old, whole)
    files = _move(table, whole.filter(is_dead), load, day_of(clock.wall_ms()))
    change = Change(tuple(files))
    after = TableState(old.version(), {}).after(state, bool(change))
    notes = {**_last_notes(table, old.version()), "load": load, "kind": "migrate", "commit": uuid.uuid4().hex}
    notes["state"] = as_dict(after)
    if change:
        notes["dead"] = change.as_dict(after.dead)
    fail_point("etl.commit.before")
    _write(table, old, after, notes)
    version = table.state().version
    make_durable(table.uri, version)
    fail_point("etl.commit.after")
    table.settle()
    return Migrated(table.topic, sum(file.rows for file in files), version)


def _write(table: TopicTable, old: DeltaTable, after: TableState, notes: dict[str, object]) -> None:
    columns = pa.schema(old.schema().to_arrow())
    keys = key_columns(by_hour="hr" in columns.names)
    kept = [column for column in columns if column.name not in (*keys.names, "kerror")]
    said = transactions(table.topic, TableState(old.version()), after)
    try:
        # "overwrite" of the partitions named by the filter alone: it is what lets a commit change a column's type.
        old.create_write_transaction(
            [],
            "overwrite",
            DeltaSchema.from_arrow(pa.schema([*keys, *kept])),
            keys.names,
            partition_filters=[("dt", "in", [OLD_DEAD, OLD_GAP])],
            commit_properties=CommitProperties(
                custom_metadata={META: json.dumps(notes)},
                app_transactions=[Transaction(name, number) for name, number in said],
            ),
        )
    except CommitFailedError as error:
        raise LoadSuperseded(
            f"a load of {table.topic} committed while it was moved over; nothing was changed. Run it again"
        ) from error


def _last_notes(table: TopicTable, version: int) -> dict[str, object]:
    """What the last load noted and still holds: how payloads are read."""
    last = next((noted for _, noted in table.notes(version)), {})
    return {"format": last.get("format")}


def _state(table: TopicTable, old: DeltaTable, whole: Dataset) -> dict[BrokerPartition, Position]:
    """Where each partition stands: its offset, and the first row there is of it."""
    rows = whole.to_table(columns=["kbroker", "kpart", "koffset"])
    found = rows.group_by(["kbroker", "kpart"]).aggregate([("koffset", "min")]).to_pylist()
    first = {BrokerPartition(row["kbroker"], row["kpart"]): row["koffset_min"] for row in found}
    noted = next((noted for _, noted in table.notes(old.version())), {}).get("partitions", ())
    parts = sorted({*first, *(BrokerPartition.parse(text) for text in noted)})
    offsets = {part: old.transaction_version(f"etl/{table.topic}/{part}") for part in parts}
    return {part: Position(first.get(part, at), at) for part, at in offsets.items() if at is not None}


def _move(table: TopicTable, dead: Dataset, load: str, day: str) -> list[WrittenFile]:
    """Write dead rows and gaps as the quarantine has them."""
    files = SplitFiles(table.quarantine.uri, f"{load}-migrate", DEAD_COLUMNS)
    columns = ["dt", *(name for name in DEAD_COLUMNS.names if name != "kstage")]
    for batch in dead.to_batches(columns=columns):
        if batch.num_rows:
            rows = pa.table(batch)
            stages = pa.array(map(_stage, rows["dt"].to_pylist(), rows["kerror"].to_pylist()), pa.string())
            files.add({"dt": day}, rows.append_column("kstage", stages).select(DEAD_COLUMNS.names).cast(DEAD_COLUMNS))
    return files.close()


def _stage(day: str, reason: str) -> str:
    if day == OLD_GAP:
        return GAP
    return PAYLOAD if _OF_PAYLOADS.match(reason) else FRAME
