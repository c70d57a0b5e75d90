"""Gaps: offsets the brokers deleted before they were loaded, kept as rows of the table.

A gap is one row in one file under ``dt=__gap__``, committed with the load that met it, so that the offsets of a
partition still add up and everyone can see what is missing. A backfill that finds the bytes after all replaces it.

Paper: §3.1 (the broker deletes by age, whoever has or has not read).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import RemoveAction

from hadoop_etl.columns import GAP_DAY, GAP_REASON, dead_table, file_schema
from hadoop_etl.files import SplitFiles, WrittenFile, place_of
from hadoop_etl.warehouse import TopicTable
from kafka2011.types import BrokerPartition


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets [start, end) of a partition that are not in the table."""

    part: BrokerPartition
    start: int
    end: int


def gaps_of(table: TopicTable) -> list[Gap]:
    """The recorded gaps, in order."""
    columns = ["kbroker", "kpart", "koffset", "knext"]
    rows = table.dataset().to_table(columns=columns, filter=pc.field("dt") == GAP_DAY).to_pylist()
    found = [Gap(BrokerPartition(r["kbroker"], r["kpart"]), r["koffset"], r["knext"]) for r in rows]
    return sorted(found, key=lambda gap: (gap.part, gap.start))


class GapFiles:
    """The gap files of one commit: what it adds and what it removes. Thread: one."""

    def __init__(self, table: TopicTable, load: str, by_hour: bool) -> None:
        self._table, self._load, self._by_hour = table, load, by_hour
        self.removed: list[RemoveAction] = []

    def record(self, part: BrokerPartition, gap: tuple[int, int]) -> list[WrittenFile]:
        """Write the row of a gap."""
        schema = file_schema(pa.schema([]))
        stem = f"{self._load}-{part}-{gap[0]}-gap"
        files = SplitFiles(self._table.uri, stem, schema)
        row = (gap[0], 0, gap[1], None, GAP_REASON)
        files.add(self._keys(), dead_table(part.broker_id, part.partition, [row], schema))
        return files.close()

    def fill(self, filled: Mapping[BrokerPartition, tuple[int, int]]) -> list[WrittenFile]:
        """Remove the gaps that ``filled`` ranges cover, and write what is left of them."""
        written: list[WrittenFile] = []
        actions = pa.table(self._table.open().get_add_actions(flatten=True)).to_pylist()
        for action in (a for a in actions if a["partition.dt"] == GAP_DAY):
            place = place_of(action["path"])
            assert place is not None  # gaps are never compacted
            part, first = place
            gap = next(g for g in gaps_of(self._table) if g.part == part and g.start == first)
            start, end = filled.get(part, (0, 0))
            if start >= gap.end or end <= gap.start:
                continue
            self.removed.append(
                RemoveAction(action["path"], True, time.time_ns() // 1_000_000, action["size_bytes"], self._keys())
            )
            for rest in ((gap.start, start), (end, gap.end)):
                if rest[0] < rest[1]:
                    written += self.record(part, rest)
        return written

    def _keys(self) -> dict[str, str]:
        return {"dt": GAP_DAY, "hr": "00"} if self._by_hour else {"dt": GAP_DAY}
