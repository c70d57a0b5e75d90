"""The columns every table of the warehouse has, and the days they are filed under.

    dt          the event's own day (UTC), or ``__dead__`` / ``__gap__``; a partition column, in no file
    hr          its hour, if the table was made with hours
    kbroker     broker id                 kpart    partition
    koffset     byte offset of the entry  kidx     place inside a compressed wrapper, else 0
    knext       offset of the next entry  ts       the event's own time
    schema_id   Avro schema               kerror   null, or why the message could not be read
    value       the payload of a raw topic, or the bytes of a dead row
    …           the fields of the events

(kbroker, kpart, koffset, kidx) names a message once and for all. Per partition the sum of (knext - koffset) over rows
with kidx = 0 is the number of bytes between the first loaded offset and the next one to load: dead rows and recorded
gaps are rows too, so anyone can check that nothing is missing.

Paper: §3.1 (offsets), §4.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

DEAD_DAY = "__dead__"
GAP_DAY = "__gap__"
GAP_REASON = "gap: deleted on the broker before it was loaded"

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
EARLIEST_MS = -62_135_596_800_000
LATEST_MS = 253_402_300_799_999
"""Years 1 to 9999: what a date can say."""

FILE_COLUMNS = pa.schema(
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
    ]
)

Ints = npt.NDArray[np.int64]


def file_schema(event_columns: pa.Schema) -> pa.Schema:
    """What a data file holds."""
    return pa.schema([*FILE_COLUMNS, *event_columns])


def table_schema(event_columns: pa.Schema, by_hour: bool) -> pa.Schema:
    """What a reader of the table sees: the partition columns in front."""
    keys = [pa.field(name, pa.string()) for name in partition_columns(by_hour)]
    return pa.schema([*keys, *file_schema(event_columns)])


def partition_columns(by_hour: bool) -> list[str]:
    """The columns the table is filed by."""
    return ["dt", "hr"] if by_hour else ["dt"]


def day_of(time_ms: int) -> str:
    """``2011-06-12`` for a time in milliseconds (UTC)."""
    return datetime.fromtimestamp(time_ms // DAY_MS * DAY_MS / 1000, UTC).strftime("%Y-%m-%d").zfill(10)


def dead_table(
    broker_id: int, partition: int, rows: list[tuple[int, int, int, bytes | None, str]], schema: pa.Schema
) -> pa.Table:
    """Rows that could not be read: (offset, index, next offset, bytes, reason)."""
    count = len(rows)
    offset, index, following, data, reason = zip(*rows, strict=True)
    filled = {
        "kbroker": pa.array([broker_id] * count, pa.int32()),
        "kpart": pa.array([partition] * count, pa.int32()),
        "koffset": pa.array(offset, pa.int64()),
        "kidx": pa.array(index, pa.int32()),
        "knext": pa.array(following, pa.int64()),
        "kerror": pa.array(reason, pa.string()),
        "value": pa.array(data, pa.binary()),
    }
    return pa.table([filled.get(f.name, pa.nulls(count, f.type)) for f in schema], schema=schema)
