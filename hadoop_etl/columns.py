"""The columns every table of the warehouse has, and the days they are filed under.

    dt          the event's own day (UTC), a date; a partition column, in no file
    hr          its hour, if the table was made with hours
    kbroker     broker id                 kpart    partition
    koffset     byte offset of the entry  kidx     place inside a compressed wrapper, else 0
    knext       offset of the next entry  ts       the event's own time
    schema_id   Avro schema               value    the payload of a raw topic
    …           the fields of the events

Tables of modern topics also have kkey, ktime (the record's own time) and kheaders. There koffset counts records,
kbroker is 2147483647, and a record whose value is null, which deletes its key, is a row without fields.

What could not be read, and what the brokers deleted before it was loaded, is in the table's quarantine beside it
(``<topic>__dead``), filed under the day of the load:

    dt, kbroker, kpart, koffset, kidx, knext   as above
    kstage      payload: the message is whole, its payload could not be decoded; frame: no whole message; gap: deleted
    kerror      why it could not be read      value    its bytes

(kbroker, kpart, koffset, kidx) names a message once and for all. Per partition the sum of (knext - koffset) over the
rows of both tables with kidx = 0 is the number of bytes between the first loaded offset and the next one to load, so
anyone can check that nothing is missing.

Paper: §3.1 (offsets), §4.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

DEAD = "__dead"
"""What the name of a quarantine ends with."""

PAYLOAD, FRAME, GAP = "payload", "frame", "gap"
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
        ("value", pa.binary()),
    ]
)

MODERN_COLUMNS = pa.schema(
    [
        ("kkey", pa.binary()),
        ("ktime", pa.timestamp("us", tz="UTC")),
        ("kheaders", pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))),
    ]
)
"""What a record of a modern topic has beside its value (``modern``)."""

DEAD_COLUMNS = pa.schema(
    [
        ("kbroker", pa.int32()),
        ("kpart", pa.int32()),
        ("koffset", pa.int64()),
        ("kidx", pa.int32()),
        ("knext", pa.int64()),
        ("kstage", pa.string()),
        ("kerror", pa.string()),
        ("value", pa.binary()),
    ]
)

BOUNDED = ("kbroker", "kpart", "koffset", "kidx", "knext", "ts")
"""Columns whose least and greatest value in each file the table's log holds, so that readers can skip files."""

Ints = npt.NDArray[np.int64]


def file_schema(event_columns: pa.Schema) -> pa.Schema:
    """What a data file holds."""
    return pa.schema([*FILE_COLUMNS, *event_columns])


def table_schema(event_columns: pa.Schema, by_hour: bool) -> pa.Schema:
    """What a reader of the table sees: the partition columns in front."""
    return pa.schema([*key_columns(by_hour), *file_schema(event_columns)])


def key_columns(by_hour: bool) -> pa.Schema:
    """The columns a table is filed by, with their types."""
    return pa.schema([("dt", pa.date32()), ("hr", pa.string())][: 1 + by_hour])


def partition_columns(by_hour: bool) -> list[str]:
    """The names of the columns a table is filed by."""
    names: list[str] = key_columns(by_hour).names
    return names


def day_of(time_ms: int) -> str:
    """``2011-06-12`` for a time in milliseconds (UTC)."""
    return datetime.fromtimestamp(time_ms // DAY_MS * DAY_MS / 1000, UTC).strftime("%Y-%m-%d").zfill(10)


DeadRow = tuple[int, int, int, bytes | None, str]
"""Offset, index, next offset, bytes, reason."""


def dead_table(broker_id: int, partition: int, rows: Sequence[DeadRow], stage: str) -> pa.Table:
    """Rows for the quarantine."""
    count = len(rows)
    offset, index, following, data, reason = zip(*rows, strict=True)
    return pa.table(
        {
            "kbroker": pa.array([broker_id] * count, pa.int32()),
            "kpart": pa.array([partition] * count, pa.int32()),
            "koffset": pa.array(offset, pa.int64()),
            "kidx": pa.array(index, pa.int32()),
            "knext": pa.array(following, pa.int64()),
            "kstage": pa.array([stage] * count, pa.string()),
            "kerror": pa.array(reason, pa.string()),
            "value": pa.array(data, pa.binary()),
        },
        schema=DEAD_COLUMNS,
    )
