"""A warehouse on disk, a broker's log in memory, and a model of what readers must find after every step.

Loads, rewinds back and forth, backfills, compactions, vacuums, requeues and crashes in any order. What is compared
after each: every message of the log between the first and the next offset, once, as a row or as a dead row, or inside
a recorded gap; and after a rewind exactly what was there at that version.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.compute as pc
from deltalake import DeltaTable

from hadoop_etl.cluster import Cluster
from hadoop_etl.errors import CannotRewind
from hadoop_etl.formats import choose_format
from hadoop_etl.job import Load
from hadoop_etl.load_run import LoadRun
from hadoop_etl.plan import Plan
from hadoop_etl.planning import Options, Planner
from hadoop_etl.requeue import requeue, sample_dead
from hadoop_etl.runners import InlineRunner
from hadoop_etl.upkeep import compact, plan_rewind, rewind, vacuum
from hadoop_etl.warehouse import Warehouse
from kafka2011.avro import TIME_FIELD, FileSchemaRegistry
from kafka2011.errors import Kafka2011Error, OffsetOutOfRange
from kafka2011.events import Journal
from kafka2011.failpoints import activate
from kafka2011.types import BrokerAddress, BrokerPartition
from kafka2011.wire import decode_set, encode_set
from kafka2011.wire.message import Codec

TOPIC = "clicks"
CRASHES = (
    "etl.task.done",
    "etl.verify",
    "etl.commit.before",
    "etl.commit.after",
    "etl.dead.before",
    "etl.dead.after",
)
NOW_MS = 1_307_847_600_000

Key = tuple[int, int, int]
"""Partition, offset, place inside a wrapper."""
Spans = frozenset[tuple[int, int, int]]
"""Partition, start and end of each gap."""


@dataclass
class FakeLog:
    """One partition on a broker: segments of bytes, of which the oldest may be away."""

    segments: list[bytes] = field(default_factory=list)
    away: int = 0
    messages: dict[tuple[int, int], tuple[int, str, int]] = field(default_factory=dict)
    """Offset and index to next offset, kind (a, b or x) and number."""

    @property
    def end(self) -> int:
        return sum(map(len, self.segments))

    @property
    def first(self) -> int:
        return sum(map(len, self.segments[: self.away]))

    def boundaries(self) -> list[int]:
        starts = [sum(map(len, self.segments[:i])) for i in range(self.away, len(self.segments))]
        return [self.end, *reversed(starts)]

    def fetch(self, offset: int, size: int) -> bytes:
        if not self.first <= offset <= self.end:
            raise OffsetOutOfRange(f"{offset} is not in {self.first} to {self.end}")
        start = 0
        for segment in self.segments:
            if offset < start + len(segment):
                return segment[offset - start : offset - start + size]
            start += len(segment)
        return b""


class FakeConnection:
    """Answers like a broker, from memory."""

    logs: list[FakeLog]

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> FakeConnection:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def fetch(self, topic: str, partition: int, offset: int, size: int) -> bytes:
        return self.logs[partition].fetch(offset, size)

    def close(self) -> None:
        pass


class FakeCluster(Cluster):
    """One broker with two partitions."""

    def __init__(self, logs: list[FakeLog]) -> None:
        parts = [BrokerPartition(0, number) for number in range(len(logs))]
        super().__init__({0: BrokerAddress(0, "nowhere", 1)}, {TOPIC: parts})
        self._logs = logs

    def first_offset(self, topic: str, part: BrokerPartition) -> int:
        return self._logs[part.partition].first

    def boundaries(self, topic: str, part: BrokerPartition) -> list[int]:
        return self._logs[part.partition].boundaries()

    def connection(self, broker_id: int) -> Any:
        return FakeConnection()


@dataclass(frozen=True)
class Content:
    """What readers find: rows with their numbers, dead rows, gaps, and [first, next) of each partition."""

    rows: frozenset[tuple[Key, int]] = frozenset()
    dead: frozenset[Key] = frozenset()
    gaps: Spans = frozenset()
    positions: tuple[tuple[int, int, int], ...] = ()


class Schemas:
    """A registry that learns of schema b late."""

    def __init__(self, root: Path) -> None:
        self._files = FileSchemaRegistry(root)
        fields = [{"name": TIME_FIELD, "type": "long"}, {"name": "n", "type": "int"}]
        self.a = self._files.register(TOPIC, {"type": "record", "name": "C", "fields": fields})
        more = [*fields, {"name": "page", "type": "string", "default": ""}]
        self.b = self._files.register(TOPIC, {"type": "record", "name": "C", "fields": more})
        self.learned = False

    def ids(self, topic: str) -> list[int]:
        return [self.a, self.b] if self.learned else [self.a]

    def schema(self, number: int) -> Any:
        return self._files.schema(number)

    def encode(self, kind: str, number: int) -> bytes:
        event = {TIME_FIELD: NOW_MS + number * 20_000_000, "n": number}
        if kind == "x":
            return b"no event %d" % number
        return self._files.encode(self.a, event) if kind == "a" else self._files.encode(self.b, {**event, "page": "/"})


class World:
    """The warehouse, its broker, and the model. Thread: one."""

    def __init__(self, like: World | None = None) -> None:
        place = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.root = Path(tempfile.mkdtemp(prefix="kafka2011-warehouse-", dir=place))
        if like is not None:
            shutil.copytree(like.root, self.root, dirs_exist_ok=True)
        self.schemas = Schemas(self.root / "schemas")
        self.logs = [FakeLog(), FakeLog()]
        FakeConnection.logs = self.logs  # of the newest world: there is one at a time
        self._patch = mock.patch("hadoop_etl.task.BrokerConnection", FakeConnection)
        self._patch.start()
        self.warehouse = Warehouse(str(self.root / "warehouse"))
        self.table = self.warehouse.table(TOPIC)
        self.number = 0
        self.now = Content()
        self.then: dict[int, Content] = {}
        self.vacuumed = False
        if like is not None:
            for mine, other in zip(self.logs, like.logs, strict=True):
                mine.segments, mine.away, mine.messages = [*other.segments], other.away, {**other.messages}
            self.number, self.now, self.then = like.number, like.now, {**like.then}
            self.schemas.learned, self.vacuumed = like.schemas.learned, like.vacuumed

    def close(self) -> None:
        self._patch.stop()
        shutil.rmtree(self.root)

    # -- what happens outside ---------------------------------------------------------------------------------------

    def send(self, partition: int, kinds: str, packed: bool = False) -> None:
        """Messages of these kinds, as a new segment: a is readable, b when the schema is learned, x never."""
        log = self.logs[partition]
        payloads = [self.schemas.encode(kind, self.number + i) for i, kind in enumerate(kinds)]
        data = encode_set(payloads, codec=Codec.GZIP if packed else Codec.NONE)
        places = [message.offset for message in decode_set(data, log.end)]
        log.segments.append(data)
        for i, (offset, kind) in enumerate(zip(places, kinds, strict=True)):
            following = log.end if packed else [*places, log.end][i + 1]
            log.messages[offset, i if packed else 0] = (following, kind, self.number + i)
        self.number += len(kinds)

    def retain(self, partition: int) -> None:
        """The broker deletes its oldest segment."""
        log = self.logs[partition]
        if log.away < len(log.segments) - 1:
            log.away += 1

    def restore(self) -> None:
        """A broker made from a backup has everything again."""
        for log in self.logs:
            log.away = 0

    def learn(self) -> None:
        self.schemas.learned = True

    # -- what is done to the warehouse ------------------------------------------------------------------------------

    def load(self, max_bytes: int | None = None, crash: str | None = None) -> None:
        plan = Planner(self.warehouse, FakeCluster(self.logs), self._options(max_bytes)).plan([TOPIC])
        self._step(lambda: self._run(plan), self._after(plan), crash)

    def backfill(self, crash: str | None = None) -> None:
        if self.table.state().version < 0:
            return
        load = LoadRun(self.warehouse, FakeCluster(self.logs), InlineRunner(1), Journal(), self._options(None))
        plan = load.plan_backfill(TOPIC)
        self._step(lambda: self._run(plan), self._after(plan), crash)

    def requeue(self, crash: str | None = None) -> None:
        if self.table.state().version < 0:
            return
        noted = self.table.state().notes.get("format")
        form = choose_format(
            TOPIC,
            "avro",
            {},
            registry=self.schemas,  # type: ignore[arg-type]  # it only reads
            noted=noted,
            sample=lambda: sample_dead(self.table),
        )
        read = {key for key in self.now.dead if self._readable(key)}
        rows = self.now.rows | {(key, self._message(key)[2]) for key in read}
        after = Content(rows, self.now.dead - read, self.now.gaps, self.now.positions)
        self._step(lambda: requeue(self.table, form), after, crash)

    def compact(self, crash: str | None = None) -> None:
        if self.table.state().version >= 0:
            self._step(lambda: compact(self.table), self.now, crash)

    def vacuum(self) -> None:
        if self.table.state().version >= 0:
            self.vacuumed = True
            self._step(lambda: vacuum(self.table, 0, dry_run=False), self.now, None)

    def rewind(self, choice: int, crash: str | None = None) -> None:
        """To any version there ever was: back, and forth again."""
        last = self.table.state().version
        if last < 0:
            return
        version = choice % (last + 1)
        known = max((v for v in self.then if v <= version), default=None)
        target = Content() if known is None else self.then[known]
        had = {part: (first, following) for part, first, following in target.positions}
        positions = tuple((part, *had.get(part, (first, first))) for part, first, _ in self.now.positions)
        after = Content(target.rows, target.dead, target.gaps, positions)
        try:
            plan = plan_rewind(self.table, version)
        except CannotRewind:
            assert self.vacuumed, "only what was vacuumed cannot come back"
            return
        self._step(lambda: rewind(self.table, plan), after, crash)

    # -- the comparison ---------------------------------------------------------------------------------------------

    def _step(self, act: Callable[[], object], after: Content, crash: str | None) -> None:
        before = self.now
        if crash is None:
            act()
            assert self.content() == after
            assert self.plain_dead() == self.table.dead_rows().count_rows(), "the quarantine has followed"
            self.now = after
        else:
            with activate(crash, "raise:EIO"), suppress(Kafka2011Error, OSError):
                act()
            self.now = self.content()
            assert self.now in (before, after), f"neither as before nor complete after {crash}"
        self.then[self.table.state().version] = self.now
        self.check_tiling()

    def content(self) -> Content:
        """What our readers find now."""
        if not self.table.exists():
            return Content()
        names = ["kpart", "koffset", "kidx"]
        columns = self.table.columns().names
        rows = self.table.dataset().to_table(columns=[*names, *(["n"] if "n" in columns else [])]).to_pylist()
        found = [((r["kpart"], r["koffset"], r["kidx"]), r["n"]) for r in rows]
        every = self.table.dead_rows()
        dead = every.to_table(columns=names, filter=pc.field("kstage") != "gap").to_pylist()
        lost = every.to_table(columns=["kpart", "koffset", "knext"], filter=pc.field("kstage") == "gap").to_pylist()
        keys = [(r["kpart"], r["koffset"], r["kidx"]) for r in dead]
        assert len({key for key, _ in found} | set(keys)) == len(found) + len(keys), "a message is there twice"
        state = self.table.state().positions
        return Content(
            frozenset(found),
            frozenset(keys),
            frozenset((r["kpart"], r["koffset"], r["knext"]) for r in lost),
            tuple((part.partition, at.first, at.next) for part, at in sorted(state.items())),
        )

    def plain_dead(self) -> int:
        """What a reader that knows nothing of us counts in the quarantine."""
        return int(DeltaTable(self.table.quarantine.uri).to_pyarrow_dataset().count_rows())

    def check_tiling(self) -> None:
        """Between first and next every message of the log is there, or in a gap."""
        here = {key for key, _ in self.now.rows} | self.now.dead
        for number, first, following in self.now.positions:
            gaps = [(a, b) for part, a, b in self.now.gaps if part == number]
            wanted = {
                (number, offset, index)
                for offset, index in self.logs[number].messages
                if first <= offset < following and not any(a <= offset < b for a, b in gaps)
            }
            assert {key for key in here if key[0] == number} == wanted

    # -- the model --------------------------------------------------------------------------------------------------

    def _options(self, max_bytes: int | None) -> Options:
        return Options(
            formats={TOPIC: "avro"},
            schemas=self.schemas,  # type: ignore[arg-type]  # it only reads
            on_gap="earliest",
            max_bytes=max_bytes,
        )

    def _run(self, plan: Plan) -> None:
        Load(self.warehouse, InlineRunner(1)).run(plan)

    def _after(self, plan: Plan) -> Content:
        """The content once a plan is published."""
        rows, dead, gaps = set(self.now.rows), set(self.now.dead), set(self.now.gaps)
        positions = {part: (first, following) for part, first, following in self.now.positions}
        if not any(part.is_news for part in plan.topics[0].ranges):
            return self.now
        for part in plan.topics[0].ranges:
            number = part.part.partition
            first, following = positions.get(number, (part.start, part.start))
            positions[number] = (min(first, part.start), max(following, part.end))
            if part.gap is not None:
                gaps.add((number, *part.gap))
            for key in ((number, *place) for place in self.logs[number].messages if part.start <= place[0] < part.end):
                if self._readable(key):
                    rows.add((key, self._message(key)[2]))
                else:
                    dead.add(key)
            if plan.kind == "backfill":
                gaps = _cut(gaps, number, part.start, part.end)
        at = tuple((number, *span) for number, span in sorted(positions.items()))
        return Content(frozenset(rows), frozenset(dead), frozenset(gaps), at)

    def _message(self, key: Key) -> tuple[int, str, int]:
        return self.logs[key[0]].messages[key[1:]]

    def _readable(self, key: Key) -> bool:
        kind = self._message(key)[1]
        return kind == "a" or (kind == "b" and self.schemas.learned)


def _cut(gaps: set[tuple[int, int, int]], number: int, start: int, end: int) -> set[tuple[int, int, int]]:
    left = {gap for gap in gaps if gap[0] != number}
    for _, a, b in (gap for gap in gaps if gap[0] == number):
        left |= {(number, x, y) for x, y in ((a, min(b, start)), (max(a, end), b)) if x < y}
    return left


def settled(world: World) -> World:
    """A world with a past: three loads, one of them after a gap, dead rows that can be read later, and one rewound."""
    for kinds in ("aab", "axa", "aba", "bbx"):
        world.send(0, kinds)
        world.send(1, kinds, packed=True)
        world.load()
    world.send(0, "aa")
    world.send(0, "ab")
    for _ in range(5):
        world.retain(0)
    world.load()
    world.learn()
    return world


STEPS: dict[str, Sequence[Callable[[World], None]]] = {
    "load": [lambda world: world.send(0, "abx"), World.load],
    "back": [lambda world: world.rewind(2)],
    "forth": [lambda world: world.rewind(max(world.then))],
    "backfill": [World.restore, World.backfill],
    "compact": [World.compact],
    "vacuum": [World.vacuum],
    "requeue": [World.requeue],
}
"""What can be done to a settled world, each by its name."""
