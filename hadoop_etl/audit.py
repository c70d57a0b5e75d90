"""Does it add up? What producers say they sent, what the brokers hold, what was loaded, per topic and window.

Paper: §4 ("each producer periodically generates a monitoring event, which records the number of messages published by
that producer for each topic within a fixed time window … we can then validate the correctness of data").

The audit topic is loaded like any other. Loaded counts come from the committed tables themselves, so the audit cannot
disagree with the data. Verdicts:

    complete      loaded = sent
    short by n    n fewer were loaded than sent
    over by n     n more (a producer that does not report, or repeats itself after a failure)
    cannot tell   nobody reported this window, it is still open, or the missing ones wait on a broker
    not audited   no producer ever reported this topic: there is nothing to compare, and nothing was promised
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hadoop_etl.cluster import Cluster
from hadoop_etl.columns import DAY_MS, DEAD, Ints
from hadoop_etl.decode import Format, make_decoder
from hadoop_etl.formats import AUDIT_TOPIC
from hadoop_etl.modern import is_modern
from hadoop_etl.reading import events
from hadoop_etl.split import Split
from hadoop_etl.task import read_split
from hadoop_etl.warehouse import TopicTable, Warehouse
from kafka2011.types import is_legal_name

GRACE_MS = 60_000
"""A window is closed when it ended this long before the audit looks: producers report a little late."""
MAX_WAITING = 256 << 20
"""Bytes not yet loaded that an audit reads to count them."""

MAX_WINDOW_MS = 31 * DAY_MS
MAX_COUNT = 1 << 53
MOST_WIDTHS = 8
"""Window lengths of a topic that are judged, those most often reported: each one reads the topic's times once."""

COMPLETE, CANNOT_TELL, NOT_AUDITED = "complete", "cannot tell", "not audited"


@dataclass(frozen=True, slots=True)
class Window:
    """One window of one topic. ``held`` counts what is loaded and what still waits on the brokers; None = not asked."""

    topic: str
    start_ms: int
    window_ms: int
    sent: int | None
    held: int | None
    loaded: int
    verdict: str
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def judge(sent: int | None, held: int | None, loaded: int, is_open: bool) -> tuple[str, str]:
    """The verdict on one window, and why if it is none."""
    if sent is None:
        return CANNOT_TELL, "no producer reported this window"
    if loaded == sent:
        return COMPLETE, ""
    if is_open:
        return CANNOT_TELL, "the window is still open"
    if held is not None and held > loaded and held >= sent:
        return CANNOT_TELL, f"{held - loaded} messages wait on the brokers; load first"
    if loaded > sent:
        return f"over by {loaded - sent}", ""
    missing = sent - max(loaded, held or 0)
    return f"short by {missing}", f"{held - loaded} more wait on the brokers" if held and held > loaded else ""


def exit_code(windows: Sequence[Window]) -> int:
    """0 everything that is audited adds up, 1 something does not, 3 cannot tell."""
    verdicts = {window.verdict for window in windows}
    if verdicts == {NOT_AUDITED}:
        return 0
    verdicts.discard(NOT_AUDITED)
    if any(verdict not in (COMPLETE, CANNOT_TELL) for verdict in verdicts):
        return 1
    return 0 if verdicts == {COMPLETE} else 3


def audit(
    warehouse: Warehouse,
    *,
    now_ms: int,
    since_ms: int = 0,
    topics: Iterable[str] = (),
    cluster: Cluster | None = None,
    must_report: bool = False,
) -> list[Window]:
    """Judge every window that begins at or after ``since_ms``, of the named topics or of all.

    A topic nobody ever reported is not audited, unless it ``must_report``: then nobody can tell. One that was reported
    once and is not any more is always of the second kind.
    """
    sent, senseless = sent_counts(warehouse, since_ms)
    ever = _ever_reported(warehouse)
    loadable = [topic for topic in warehouse.topics() if topic != AUDIT_TOPIC]
    wanted = list(topics) or sorted({*loadable, *(topic for topic, _ in sent)})
    found: list[Window] = []
    if senseless and not topics:
        why = f"{senseless} reports make no sense and are left out: who may write to this topic?"
        found.append(Window(AUDIT_TOPIC, since_ms, 0, None, None, 0, NOT_AUDITED, why))
    for topic in wanted:
        widths = {width for name, width in sent if name == topic}
        if not widths:
            is_audited = must_report or topic in ever
            why = "no producer reports this topic" + (" any more" if topic in ever else "")
            verdict = CANNOT_TELL if is_audited else NOT_AUDITED
            found.append(Window(topic, since_ms, 0, None, None, 0, verdict, why))
        for width in sorted(widths):
            said = sent[topic, width]
            first = min(said)
            table = warehouse.table(topic)
            loaded = loaded_counts(table, width, first) if table.exists() else Counter()
            waiting = waiting_counts(table, cluster, width) if cluster is not None and table.exists() else None
            last = max(said)
            # Rows outside what was reported have nobody to compare with, unless they lie between reports.
            for start in sorted({*said, *(w for w in loaded if first <= w <= last)}):
                held = None if waiting is None else loaded[start] + waiting[start]
                is_open = start + width + GRACE_MS > now_ms
                verdict, why = judge(said.get(start), held, loaded[start], is_open)
                found.append(Window(topic, start, width, said.get(start), held, loaded[start], verdict, why))
    return found


def _ever_reported(warehouse: Warehouse) -> set[str]:
    """The topics some producer reported, ever."""
    table = warehouse.table(AUDIT_TOPIC)
    found: set[str] = set()
    if table.exists():
        for batch in events(table).to_batches(columns=["topic"]):
            found.update(pc.unique(batch.column(0)).to_pylist())
    return found


Sent = dict[tuple[str, int], dict[int, int]]
"""Topic and window length, to window start, to count."""


def sent_counts(warehouse: Warehouse, since_ms: int) -> tuple[Sent, int]:
    """What producers said, and how many reports say nothing that could be true. A repeated event counts once.

    Whoever may publish can write anything here: such a report costs itself, and no audit.
    """
    table = warehouse.table(AUDIT_TOPIC)
    if not table.exists():
        return {}, 0
    columns = ["producer", "sequence", "topic", "window_start_ms", "window_ms", "count"]
    rows = events(table).to_table(columns=columns, filter=pc.field("window_start_ms") >= since_ms)
    once = {(row["producer"], row["sequence"]): row for row in rows.to_pylist()}
    said: Sent = {}
    senseless = 0
    for row in once.values():
        if not _is_sensible(row):
            senseless += 1
            continue
        windows = said.setdefault((row["topic"], row["window_ms"]), {})
        windows[row["window_start_ms"]] = windows.get(row["window_start_ms"], 0) + row["count"]
    for topic in {topic for topic, _ in said}:
        widths = sorted((key for key in said if key[0] == topic), key=lambda key: -len(said[key]))
        for key in widths[MOST_WIDTHS:]:
            senseless += len(said.pop(key))
    return said, senseless


def _is_sensible(row: Mapping[str, Any]) -> bool:
    """Tell whether a report could be a producer's: a topic that can be a table, a window that begins where one does."""
    topic, start, width, count = (row[name] for name in ("topic", "window_start_ms", "window_ms", "count"))
    if None in (topic, width, count) or not is_legal_name(topic) or topic.startswith("_") or topic.endswith(DEAD):
        return False
    return bool(0 < width <= MAX_WINDOW_MS and start % width == 0 and 0 <= count < MAX_COUNT)


def loaded_counts(table: TopicTable, window_ms: int, since_ms: int) -> Counter[int]:
    """Rows per window in the committed table, one batch at a time."""
    counts: Counter[int] = Counter()
    # By time, not by day: the table's log holds each file's times, and days may be those of a time zone.
    wanted = pc.field("ts") >= pa.scalar(since_ms, pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))
    for batch in events(table).to_batches(columns=["ts"], filter=wanted):
        times = pc.cast(batch.column(0), pa.timestamp("ms", tz="UTC"), safe=False)
        _count(pc.drop_null(pc.cast(times, pa.int64())).to_numpy(zero_copy_only=False), window_ms, counts)
    return counts


def waiting_counts(table: TopicTable, cluster: Cluster, window_ms: int) -> Counter[int]:
    """Messages per window that the brokers hold beyond the table's offsets; read, up to a limit, and not loaded."""
    counts: Counter[int] = Counter()
    state = table.state()
    noted: Mapping[str, Any] | None = state.notes.get("format")
    if noted is None:
        return counts
    form = Format.from_dict(noted)
    decoder, column = make_decoder(form), form.time_column()
    for part, offset in state.offsets.items():
        if part.broker_id not in cluster.brokers or is_modern(part):
            continue
        boundaries = cluster.boundaries(table.topic, part)
        start = max(offset, cluster.first_offset(table.topic, part))
        end = max(boundaries, default=0)
        if not start < end <= start + MAX_WAITING:
            continue
        split = Split(start, end, end)
        for entries, _ in read_split(table.topic, part, cluster.address(part.broker_id), split, 4 << 20):
            for rows in entries.rows:
                columns = decoder.decode(rows.payload).columns
                if column in columns.column_names and columns.num_rows:
                    time_ms, known, _ = form.time.read(columns.column(column).combine_chunks())
                    _count(time_ms[known], window_ms, counts)
    return counts


def _count(time_ms: Ints, window_ms: int, counts: Counter[int]) -> None:
    starts, found = np.unique(time_ms - time_ms % window_ms, return_counts=True)
    counts.update(dict(zip(starts.tolist(), found.tolist(), strict=True)))
