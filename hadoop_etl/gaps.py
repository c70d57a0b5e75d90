"""Gaps: offsets the brokers deleted before they were loaded, kept as rows of the quarantine.

A gap is one row, decided by the commit of the load that met it, so that the offsets of a partition still add up and
everyone can see what is missing. A backfill that finds the bytes after all takes it out again.

Paper: §3.1 (the broker deletes by age, whoever has or has not read).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hadoop_etl.columns import DEAD_COLUMNS, GAP, GAP_REASON, dead_table
from hadoop_etl.files import WrittenFile
from hadoop_etl.quarantine import Change
from hadoop_etl.warehouse import TopicTable
from kafka2011.types import BrokerPartition

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets [start, end) of a partition that are not in the table."""

    part: BrokerPartition
    start: int
    end: int

    def without(self, span: Span) -> list[Gap]:
        """What is left of it when a span was filled."""
        rests = ((self.start, min(span[0], self.end)), (max(span[1], self.start), self.end))
        return [Gap(self.part, a, b) for a, b in rests if a < b]


def gaps_of(table: TopicTable) -> list[Gap]:
    """The recorded gaps, in order."""
    rows = table.dead_rows().to_table(columns=DEAD_COLUMNS.names, filter=pc.field("kstage") == GAP)
    return sorted(_gaps(rows), key=lambda gap: (gap.part, gap.start))


def record_gap(table: TopicTable, part: BrokerPartition, span: Span, load: str, day: str) -> list[WrittenFile]:
    """Write the row of a gap."""
    return table.quarantine.write(_rows([Gap(part, *span)]), day, f"{load}-{part}-{span[0]}-gap")


def fill_gaps(table: TopicTable, filled: Mapping[BrokerPartition, Span], load: str) -> Change:
    """Take the gaps that ``filled`` spans cover out of the quarantine, and keep what is left of them."""
    number, added, removed = table.state().dead, list[WrittenFile](), list[WrittenFile]()
    for file in table.dead_files():
        rows = table.quarantine.rows(file)
        is_gap = pc.equal(rows.column("kstage"), GAP)
        gaps = _gaps(rows.filter(is_gap))
        left = [rest for gap in gaps for rest in gap.without(filled.get(gap.part, (0, 0)))]
        if left != gaps:
            rest = pa.concat_tables([rows.filter(pc.invert(is_gap)), _rows(left)])
            removed.append(file)
            added += table.quarantine.write(rest, file.keys["dt"], f"{load}-{len(removed)}-gaps")
    return Change(tuple(added), tuple(removed), seen=number)


def _gaps(rows: pa.Table) -> list[Gap]:
    return [Gap(BrokerPartition(r["kbroker"], r["kpart"]), r["koffset"], r["knext"]) for r in rows.to_pylist()]


def _rows(gaps: list[Gap]) -> pa.Table:
    made = [
        dead_table(gap.part.broker_id, gap.part.partition, [(gap.start, 0, gap.end, None, GAP_REASON)], GAP)
        for gap in gaps
    ]
    return pa.concat_tables([DEAD_COLUMNS.empty_table(), *made])
