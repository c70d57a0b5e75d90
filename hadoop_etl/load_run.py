"""One run of the load: lock, plan, load, audit, report, announce.

Whatever happens, the report is written before the exit code is given, and running again is always the right thing to
do: it begins where the tables say.

Paper: §4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hadoop_etl.announce import Announcer
from hadoop_etl.audit import Window, audit
from hadoop_etl.cluster import Cluster
from hadoop_etl.columns import HOUR_MS
from hadoop_etl.events import LoadPlanned
from hadoop_etl.failures import isolated
from hadoop_etl.formats import AUDIT_TOPIC
from hadoop_etl.gaps import gaps_of
from hadoop_etl.job import Load, Outcome
from hadoop_etl.lock import locked
from hadoop_etl.plan import Plan, Range, TopicPlan, new_load
from hadoop_etl.planning import Options, Planner, check_still_fits
from hadoop_etl.runners import Runner
from hadoop_etl.state import save_plan
from hadoop_etl.warehouse import Warehouse
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.events import Journal
from kafka2011.failpoints import fail_point
from kafka2011.types import BrokerPartition

AUDIT_BACK_MS = 7 * 24 * HOUR_MS


@dataclass(slots=True)
class LoadRun:
    """Everything a load needs. Thread: one."""

    warehouse: Warehouse
    cluster: Cluster
    runner: Runner
    journal: Journal
    options: Options
    clock: Clock = SYSTEM_CLOCK
    max_dead: float | None = None
    max_minutes: float | None = None
    announcer: Announcer = field(default_factory=Announcer)

    def run(self, topics: Sequence[str] = (), plan: Plan | None = None) -> dict[str, Any]:
        """Load the topics, or exactly ``plan``; returns the report."""
        with self.announcer.watching(self.warehouse.root), locked(self.warehouse, "etl run"):
            if plan is None:
                plan = Planner(self.warehouse, self.cluster, self.options, self.clock).plan(topics)
            else:
                check_still_fits(self._unpublished(plan), self.warehouse, self.cluster)
            return self._execute(plan)

    def backfill(
        self, topic: str, part: BrokerPartition | None = None, start: int | None = None, end: int | None = None
    ) -> dict[str, Any]:
        """Load what the table lacks and the brokers hold: recorded gaps, and offsets before its first."""
        with self.announcer.watching(self.warehouse.root), locked(self.warehouse, "etl backfill"):
            return self._execute(self.plan_backfill(topic, part, start, end))

    def plan_backfill(
        self, topic: str, part: BrokerPartition | None = None, start: int | None = None, end: int | None = None
    ) -> Plan:
        """The holes of a table that can be filled now, as a plan; of one partition, or inside these offsets, if given.

        A hole is filled whole: its ends are message boundaries, an offset out of someone's head may not be one.
        """
        table = self.warehouse.table(topic)
        state = table.state()
        planner = Planner(self.warehouse, self.cluster, self.options, self.clock)
        ranges: list[Range] = []
        for known, position in sorted(state.positions.items()):
            if part not in (None, known) or known.broker_id not in self.cluster.brokers:
                continue
            first = self.cluster.first_offset(topic, known)
            holes = [(gap.start, gap.end) for gap in gaps_of(table) if gap.part == known]
            holes.insert(0, (first, position.first))
            wanted = ((max(a, first), b) for a, b in holes if a >= (start or 0) and (end is None or b <= end))
            # One hole of a partition at a time: a commit may hold one range per partition.
            hole = next(((a, b) for a, b in wanted if a < b), None)
            if hole is not None:
                ranges.append(planner.hole(topic, known, position, hole))
        created_ms = self.clock.wall_ms()
        form = planner.form_of(topic, ranges, state)
        planned = TopicPlan(topic, form, table.by_hour(), tuple(ranges), version=state.version)
        return Plan(new_load(created_ms), created_ms, self.warehouse.root, (planned,), "backfill")

    def _unpublished(self, plan: Plan) -> Plan:
        """The part of a saved plan that is still to be done: the rest was published before a crash."""
        left = tuple(t for t in plan.topics if self.warehouse.table(t.topic).published(plan.load, t.version) is None)
        return Plan(plan.load, plan.created_ms, plan.warehouse, left, plan.kind)

    def _execute(self, plan: Plan) -> dict[str, Any]:
        save_plan(self.warehouse, plan)
        fail_point("etl.plan.written")
        splits = sum(len(part.splits) for topic in plan.topics for part in topic.ranges)
        self.journal.emit(
            LoadPlanned(load=plan.load, hash=plan.hash, topics=len(plan.topics), bytes=plan.size, splits=splits)
        )
        deadline = None
        if self.max_minutes is not None and plan.kind == "load":
            deadline = self.clock.wall_ms() + round(self.max_minutes * 60_000)
        load = Load(
            self.warehouse,
            self.runner,
            journal=self.journal,
            clock=self.clock,
            max_dead=self.max_dead,
            deadline_ms=deadline,
        )
        outcome, windows, errors = Outcome(plan), list[Window](), list[str]()
        with isolated(errors.append):
            outcome = load.run(plan)
            fail_point("etl.audit")
            windows = self._audit(outcome)
        return self.announcer.announce(self.warehouse, outcome, windows, errors[0] if errors else None)

    def _audit(self, outcome: Outcome) -> list[Window]:
        """Audit the time this load touched, a week at most."""
        hours = [hour for topic in outcome.topics if topic.topic != AUDIT_TOPIC for hour in topic.hours]
        if not hours or not self.warehouse.table(AUDIT_TOPIC).exists():
            return []
        since = max(min(hours) * HOUR_MS, max(hours) * HOUR_MS - AUDIT_BACK_MS)
        touched = [t.topic for t in outcome.topics if t.topic != AUDIT_TOPIC]
        return audit(self.warehouse, now_ms=outcome.plan.created_ms, since_ms=since, topics=touched)
