"""Make a plan: ask the table where it ended, the brokers how far they go, and decide what lies between.

Paper: §3.1 (a reader may rewind; the broker deletes by age, whoever has read or not), §4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hadoop_etl.cluster import Cluster
from hadoop_etl.decode import Format
from hadoop_etl.errors import PlanChanged, RetentionGap, UnknownTopic
from hadoop_etl.failures import isolated
from hadoop_etl.formats import AUDIT_TOPIC, choose_format
from hadoop_etl.ledger import Position, TableState
from hadoop_etl.modern import is_modern
from hadoop_etl.plan import SPLIT_SIZE, Plan, Range, TopicPlan, new_load
from hadoop_etl.split import Split, make_splits, walk_to
from hadoop_etl.warehouse import Warehouse
from kafka2011.avro import SchemaRegistry
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.types import BrokerPartition


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may choose about a load."""

    formats: Mapping[str, str] = field(default_factory=dict)
    """Topic to raw, json, avro or auto."""
    schemas: SchemaRegistry | None = None
    times: Mapping[str, str] = field(default_factory=dict)
    """What was said of the events' time: time_field, time_format, time_zone, or some of them."""
    by_hour: bool = False
    start: str = "earliest"
    """Where a partition the table has never seen begins: earliest or latest."""
    on_gap: str = "fail"
    """fail; earliest: go on at the broker's first offset; skip: leave the partition out of this load."""
    allow_missing: bool = False
    """Whether a topic may be named that nobody knows."""
    max_bytes: int | None = None
    split_size: int = SPLIT_SIZE


RECORDS = 1_000_000
"""Of a modern topic, in one split: any offset is a place to split."""


class Planner:
    """Makes plans for one warehouse and one cluster. Thread: one."""

    def __init__(self, warehouse: Warehouse, cluster: Cluster, options: Options, clock: Clock = SYSTEM_CLOCK) -> None:
        self._warehouse, self._cluster, self._options, self._clock = warehouse, cluster, options, clock

    def plan(self, topics: Sequence[str] = ()) -> Plan:
        """Plan the named topics, or all that ZooKeeper knows."""
        created_ms = self._clock.wall_ms()
        # Names with a leading underscore are the system's own (the offsets log of the modern groups).
        names = list(topics) or [name for name in self._cluster.topics() if not name.startswith("_")]
        # The audit first: what its events count was sent before, so the other ends, read later, include it.
        names.sort(key=lambda name: (name != AUDIT_TOPIC, name))
        planned = tuple(self._topic_or_reason(name) for name in names)
        return Plan(new_load(created_ms), created_ms, self._warehouse.root, planned)

    def _topic_or_reason(self, topic: str) -> TopicPlan:
        """What to load of a topic; if that cannot be told, why. The other topics have their night all the same."""
        planned: list[TopicPlan] = []
        reasons: list[str] = []
        with isolated(reasons.append):
            planned.append(self._topic(topic))
        return planned[0] if planned else TopicPlan(topic, Format(), False, (), error=reasons[0])

    def _topic(self, topic: str) -> TopicPlan:
        table = self._warehouse.table(topic)
        state = table.state()
        parts = self._cluster.partitions(topic)
        # A broker that is down must not stop the others' load; it is said, and its turn comes when it is back.
        known = sorted({*parts, *state.offsets})
        missing = tuple(part for part in known if part.broker_id not in self._cluster.brokers)
        if not known and not self._options.allow_missing:
            raise self._unknown(topic)
        budget = self._options.max_bytes
        ranges = []
        for part in (part for part in known if part not in missing):
            found = self.range(topic, part, state.positions.get(part), budget)
            if found is not None:
                ranges.append(found)
                budget = None if budget is None else max(budget - found.size, 0)
        # A broker of 0.7 answers for topics it has never heard of: their partitions are there, and empty from 0 on.
        never = state.version < 0 and all(part.end == 0 for part in ranges) and len(ranges) == len(known)
        if never and not self._cluster.is_registered(topic) and not self._options.allow_missing:
            raise self._unknown(topic)
        # Offsets first, schemas after: whatever lies before those offsets had its schema registered before.
        by_hour = table.by_hour() if state.version >= 0 else self._options.by_hour
        form = self.form_of(topic, ranges, state)
        return TopicPlan(topic, form, by_hour, tuple(ranges), missing, state.version)

    def _unknown(self, topic: str) -> UnknownTopic:
        return UnknownTopic(
            f"no broker has a topic {topic!r}, and neither has the warehouse; is it spelt right? --allow-missing goes "
            "on without it, for a topic that will come later"
        )

    def range(self, topic: str, part: BrokerPartition, known: Position | None, budget: int | None) -> Range | None:
        """What to load of one partition; None if it is to be left out."""
        boundaries = self._cluster.boundaries(topic, part)
        first, end = self._cluster.first_offset(topic, part), max(boundaries, default=0)
        gap, expected = None, None if known is None else known.next
        if known is not None:
            self._cluster.check_mark(topic, part, known.mark, first, end)
        if expected is None:
            start = first if self._options.start == "earliest" else end
        elif expected > end:
            raise PlanChanged(
                f"{topic} {part}: the table goes to {expected}, the broker only to {end}. The broker lost data or is "
                "another one; rewind the table if it is to be loaded again"
            )
        elif expected < first:
            if self._options.on_gap == "fail":
                raise RetentionGap(
                    f"{topic} {part}: offsets {expected} to {first} were deleted on the broker before they were "
                    "loaded. Nothing was loaded. --on-gap earliest records the gap and goes on at its end, "
                    "--on-gap skip leaves this partition out"
                )
            if self._options.on_gap == "skip":
                return None
            gap, start = (expected, first), first
        else:
            start = expected
        return self._range(topic, part, start, end, expected, boundaries, gap, budget)

    def _range(
        self,
        topic: str,
        part: BrokerPartition,
        start: int,
        end: int,
        expected: int | None,
        boundaries: Sequence[int],
        gap: tuple[int, int] | None,
        budget: int | None,
    ) -> Range:
        if is_modern(part):
            splits = tuple(Split(a, min(a + RECORDS, end), min(a + RECORDS, end)) for a in range(start, end, RECORDS))
            mark = self._cluster.make_mark(topic, part, start, end)
            return Range(part, self._cluster.address(part.broker_id), start, end, expected, splits, (), gap, mark)
        fetch = self._cluster.fetch_from(topic, part)
        if budget is not None and end - start > budget:
            sure = [b for b in boundaries if start + budget // 2 < b <= start + budget]
            end = max(sure) if sure else walk_to(fetch, start, budget)
        segments = tuple(sorted(b for b in boundaries if start < b < end))
        splits = tuple(make_splits(start, end, segments, self._options.split_size, fetch))
        mark = self._cluster.make_mark(topic, part, min(boundaries, default=start), end) if end > start else None
        return Range(part, self._cluster.address(part.broker_id), start, end, expected, splits, segments, gap, mark)

    def hole(self, topic: str, part: BrokerPartition, known: Position, span: tuple[int, int]) -> Range:
        """The range of a backfill, whose ends are boundaries already known."""
        boundaries = self._cluster.boundaries(topic, part)
        first, end = self._cluster.first_offset(topic, part), max(boundaries, default=0)
        self._cluster.check_mark(topic, part, known.mark, first, end)
        found = self._range(topic, part, *span, known.next, boundaries, None, None)
        return replace(found, mark=known.mark)

    def form_of(self, topic: str, ranges: Sequence[Range], state: TableState) -> Format:
        """How to read a topic: as asked for, as the last load did, or as a sample suggests."""
        starts = {part.part: (part.start, part.size) for part in ranges}
        return choose_format(
            topic,
            self._options.formats.get(topic, "auto"),
            self._options.times,
            registry=self._options.schemas,
            noted=state.notes.get("format"),
            sample=lambda: self._cluster.sample(topic, starts),
        )


def check_still_fits(plan: Plan, warehouse: Warehouse, cluster: Cluster) -> None:
    """Refuse a saved plan the world has moved away from, naming what changed."""
    changes = []
    if plan.warehouse != warehouse.root:
        changes.append(f"it is for the warehouse {plan.warehouse}")
    for topic in plan.topics:
        offsets = warehouse.table(topic.topic).state().offsets
        for part in topic.ranges:
            where = f"{topic.topic} {part.part}"
            if plan.kind == "load" and offsets.get(part.part) != part.expected:
                changes.append(f"{where}: the table is at {offsets.get(part.part)}, the plan begins at {part.expected}")
            address = cluster.brokers.get(part.part.broker_id)
            if address != part.address:
                changes.append(f"{where}: the plan's {part.address} is now {address or 'gone'}")
                continue
            first, end = cluster.first_offset(topic.topic, part.part), max(cluster.boundaries(topic.topic, part.part))
            if part.size and first > part.start:
                changes.append(f"{where}: the broker deleted up to {first}, the plan begins at {part.start}")
            if end < part.end:
                changes.append(f"{where}: the broker ends at {end}, the plan at {part.end}")
                continue
            cluster.check_mark(topic.topic, part.part, part.mark, first, end)
    if changes:
        raise PlanChanged(f"plan {plan.load} does not fit any more: {'; '.join(changes)}. Make a new plan")

