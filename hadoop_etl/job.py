"""Execute a plan: run the tasks, prove that nothing is missing, publish each topic in one commit.

    planned -> running: tables exist, files are being written that nobody can see
    running -> verified: every split met its neighbour, files hold as many rows as were read
    verified -> published: one log entry with files and offsets; before it the table is as it was

A crash anywhere leaves the table as before or complete. What to do after it is always the same: run again.

Paper: §4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from hadoop_etl.columns import DAY_MS, day_of
from hadoop_etl.errors import LoadError, TilingBroken, TooManyDead
from hadoop_etl.events import LoadProgress, LoadPublished, SplitsRefused, TaskFailed, TopicFailed, WorkerDied
from hadoop_etl.failures import isolated
from hadoop_etl.gaps import fill_gaps, record_gap
from hadoop_etl.halving import Halving
from hadoop_etl.ledger import Position
from hadoop_etl.modern import is_modern
from hadoop_etl.plan import CHUNK_SIZE, Plan, Range, TopicPlan
from hadoop_etl.quarantine import Change
from hadoop_etl.runners import Runner
from hadoop_etl.task import event_columns
from hadoop_etl.tiling import check_rows, winners
from hadoop_etl.warehouse import TopicTable, Warehouse
from hadoop_etl.work import LostSplit, Result, SplitResult, Work
from kafka2011.client import BrokerConnection
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.events import Journal
from kafka2011.failpoints import fail_point
from kafka2011.types import BrokerPartition


@dataclass(slots=True)
class TopicOutcome:
    """What became of one topic."""

    topic: str
    version: int | None = None
    rows: int = 0
    dead: int = 0
    late: int = 0
    extra: int = 0
    bytes: int = 0
    files: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    hours: Counter[int] = field(default_factory=Counter)
    loaded: dict[BrokerPartition, tuple[int, int]] = field(default_factory=dict)
    gaps: dict[BrokerPartition, tuple[int, int]] = field(default_factory=dict)
    left: int = 0
    """Bytes of the plan not loaded because of the deadline."""
    missing: tuple[BrokerPartition, ...] = ()
    """Partitions left out because their broker was not registered."""
    error: str | None = None
    note: str = ""


@dataclass(slots=True)
class Outcome:
    """What became of a load."""

    plan: Plan
    topics: list[TopicOutcome] = field(default_factory=list)
    seconds: float = 0.0
    failed_tasks: int = 0

    @property
    def ok(self) -> bool:
        """Tell whether every topic was published or had nothing to publish."""
        return all(topic.error is None for topic in self.topics)


def all_done(found: Iterable[Result]) -> list[SplitResult]:
    """What the tasks of a topic did, if none of them is lost."""
    done = []
    for one in found:
        if isinstance(one, LostSplit):
            raise LoadError(one.reason)
        done.append(one)
    return done


class Load:
    """One execution of one plan. Thread: one."""

    def __init__(
        self,
        warehouse: Warehouse,
        runner: Runner,
        *,
        journal: Journal | None = None,
        clock: Clock = SYSTEM_CLOCK,
        max_dead: float | None = None,
        deadline_ms: int | None = None,
        chunk_size: int = CHUNK_SIZE,
    ) -> None:
        self._warehouse, self._runner, self._journal, self._clock = warehouse, runner, journal or Journal(), clock
        self._max_dead, self._deadline_ms, self._chunk_size = max_dead, deadline_ms, chunk_size
        self._failed = 0

    def run(self, plan: Plan) -> Outcome:
        """Load and publish; a topic that fails does not keep the others from being published."""
        began = self._clock.monotonic()
        outcome = Outcome(plan)
        waiting: list[tuple[TopicPlan, TopicOutcome]] = []
        for topic in plan.topics:
            result = TopicOutcome(topic.topic, missing=topic.missing)
            outcome.topics.append(result)
            with self._alone(plan, result):
                if self._is_waiting(plan, topic, result):
                    waiting.append((topic, result))
        found = self._run_tasks(plan, [topic for topic, _ in waiting])
        for topic, result in waiting:
            with self._alone(plan, result):
                self._publish(plan, topic, [one for one in found if one.work.topic == topic.topic], result)
        outcome.seconds = self._clock.monotonic() - began
        outcome.failed_tasks = self._failed
        return outcome

    @contextmanager
    def _alone(self, plan: Plan, result: TopicOutcome) -> Iterator[None]:
        """A failure in here, of whatever kind, is this topic's and is on the report."""

        def failed(reason: str) -> None:
            result.error = reason
            self._journal.emit(TopicFailed(load=plan.load, topic=result.topic, reason=reason))

        with isolated(failed):
            yield

    def _is_waiting(self, plan: Plan, topic: TopicPlan, result: TopicOutcome) -> bool:
        """Tell whether there is something to load, and make the table ready for it."""
        if topic.error is not None:
            raise LoadError(topic.error)
        table = self._warehouse.table(topic.topic)
        table.settle()
        published = table.published(plan.load, topic.version)
        if published is not None:
            result.version, result.note = published, "was published before by this plan"
        elif not any(part.is_news for part in topic.ranges):
            result.note = "nothing new"
        else:
            self._prepare(table, topic)
            return True
        return False

    def _prepare(self, table: TopicTable, topic: TopicPlan) -> None:
        """Make the table and its new columns. Harmless if the load dies now: no row, no offset."""
        columns = event_columns(topic.form, modern=any(is_modern(part.part) for part in topic.ranges))
        table.create(columns, topic.by_hour)
        table.add_columns(columns)

    def _run_tasks(self, plan: Plan, topics: Sequence[TopicPlan]) -> list[Result]:
        works = [self._work(plan, t, p, i) for t in topics for p in t.ranges for i in range(len(p.splits))]
        total = sum(work.split.end - work.split.start for work in works)
        began = self._clock.monotonic()

        def on_progress(done: int, failed: int) -> None:
            if failed > self._failed:
                reason = f"{failed - self._failed} attempts failed and are made again"
                self._journal.emit(TaskFailed(load=plan.load, reason=reason))
            self._failed = max(self._failed, failed)
            self._journal.emit(
                LoadProgress(
                    load=plan.load,
                    splits_done=done,
                    splits=len(works),
                    bytes_done=total * done // max(len(works), 1),
                    bytes=total,
                    seconds=round(self._clock.monotonic() - began, 1),
                )
            )

        found = self._runner.run(works, on_progress) if works else []
        return [self._rescued(plan, one) if isinstance(one, LostSplit) and one.died else one for one in found]

    def _rescued(self, plan: Plan, lost: LostSplit) -> Result:
        """Load in halves what a worker died of, but for the message that killed it."""
        work = lost.work
        if is_modern(work.part):
            return lost
        self._journal.emit(WorkerDied(load=plan.load, topic=work.topic, reason=lost.reason))
        found: list[Result] = []
        reasons: list[str] = []
        with isolated(reasons.append), BrokerConnection(work.address.host, work.address.port) as connection:
            fetch = partial(connection.fetch, work.topic, work.part.partition)
            search = Halving(lambda works: self._runner.run(works, lambda done, failed: None), fetch)
            found.append(search.rescue(lost))
        return found[0] if found else LostSplit(work, f"{lost.reason}; and then: {reasons[0]}")

    def _work(self, plan: Plan, topic: TopicPlan, part: Range, number: int) -> Work:
        table = self._warehouse.table(topic.topic)
        return Work(
            load=plan.load,
            topic=topic.topic,
            part=part.part,
            address=part.address,
            split=part.splits[number],
            form=topic.form,
            table_uri=table.uri,
            dead_uri=table.quarantine.uri,
            by_hour=topic.by_hour,
            load_day=day_of(plan.created_ms),
            late_before_ms=plan.created_ms // DAY_MS * DAY_MS - DAY_MS,
            chunk_size=self._chunk_size,
            deadline_ms=self._deadline_ms,
        )

    def _publish(self, plan: Plan, topic: TopicPlan, found: Sequence[Result], result: TopicOutcome) -> None:
        done = all_done(found)
        try:
            ends, taken = self._verify(topic, done)
        except TilingBroken as error:
            self._journal.emit(SplitsRefused(load=plan.load, topic=topic.topic, reason=str(error)))
            again = plan.without_probed_splits(topic.topic)
            topic = next(t for t in again.topics if t.topic == topic.topic)
            ends, taken = self._verify(topic, all_done(self._run_tasks(again, [topic])))
        self._count(topic, ends, taken, result)
        fail_point("etl.verify")
        table = self._warehouse.table(topic.topic)
        files = [file for one in taken for file in one.files]
        result.version = table.commit(
            expected={part.part: part.expected for part in topic.ranges if part.expected is not None},
            following=self._following(plan, topic, ends),
            files=files,
            dead=self._dead(plan, topic, ends, taken),
            notes={"load": plan.load, "plan": plan.hash, "kind": plan.kind, "format": topic.form.as_dict()},
        )
        self._journal.emit(
            LoadPublished(
                load=plan.load,
                topic=topic.topic,
                version=result.version,
                rows=result.rows,
                dead=result.dead,
                files=len(files),
            )
        )

    def _following(
        self, plan: Plan, topic: TopicPlan, ends: dict[BrokerPartition, int]
    ) -> dict[BrokerPartition, Position]:
        """How far each partition will be loaded; a backfill goes on where the table was."""
        state = self._warehouse.table(topic.topic).state()
        found = {}
        for part in topic.ranges:
            following = ends[part.part]
            if plan.kind == "backfill" and part.expected is not None:
                following = part.expected
            found[part.part] = state.reaching(part.part, part.start, following, part.mark)
        return found

    def _dead(
        self, plan: Plan, topic: TopicPlan, ends: dict[BrokerPartition, int], taken: Sequence[SplitResult]
    ) -> Change:
        """What becomes of the quarantine: new dead rows, gaps met and gaps filled."""
        table, added = self._warehouse.table(topic.topic), [file for one in taken for file in one.dead_files]
        if plan.kind == "backfill":
            filled = fill_gaps(table, {part.part: (part.start, ends[part.part]) for part in topic.ranges}, plan.load)
            return Change((*added, *filled.added), filled.removed, filled.seen)
        day = day_of(plan.created_ms)
        for part in topic.ranges:
            if part.gap is not None:
                added += record_gap(table, part.part, part.gap, plan.load, day)
        return Change(tuple(added))

    def _verify(
        self, topic: TopicPlan, done: Sequence[SplitResult]
    ) -> tuple[dict[BrokerPartition, int], list[SplitResult]]:
        ends, taken = {}, []
        for part in topic.ranges:
            where = f"{topic.topic} {part.part}"
            end, mine = winners(part, [d for d in done if d.work.part == part.part], where)
            check_rows(mine, where)
            ends[part.part] = end
            taken += mine
        return ends, taken

    def _count(
        self, topic: TopicPlan, ends: dict[BrokerPartition, int], taken: Sequence[SplitResult], result: TopicOutcome
    ) -> None:
        for part in topic.ranges:
            result.loaded[part.part] = (part.start, ends[part.part])
            result.bytes += ends[part.part] - part.start
            result.left += part.end - ends[part.part]
            if part.gap is not None:
                result.gaps[part.part] = part.gap
        for one in taken:
            result.rows += one.rows
            result.dead += one.dead
            result.late += one.late
            result.extra += one.extra
            result.files += len(one.files) + len(one.dead_files)
            result.reasons.update(one.reasons)
            result.hours.update(one.hours)
        allowed = self._max_dead
        if allowed is not None and result.dead > allowed * (result.rows + result.dead):
            reasons = ", ".join(f"{count} x {reason}" for reason, count in result.reasons.most_common(3))
            raise TooManyDead(
                f"{topic.topic}: {result.dead} of {result.rows + result.dead} messages cannot be read ({reasons}), "
                f"more than the {allowed:.4%} allowed; nothing of this topic was published. Look at the messages with "
                "'kafka2011 fetch', mend the format, or say --max-dead 100% to publish what can be read"
            )
