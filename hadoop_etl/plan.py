"""The plan of a load: which bytes of which partitions, decided once and written down.

Paper: §4. A plan names for every partition the range from the table's offset to the flushed end, the cuts, and how
payloads are read. It is a JSON file with a hash over everything in it: ``run --plan`` executes exactly that, or says
what has changed.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from hadoop_etl.decode import Format
from hadoop_etl.errors import PlanChanged
from hadoop_etl.ledger import Mark
from hadoop_etl.split import Split
from kafka2011.types import BrokerAddress, BrokerPartition

SPLIT_SIZE = 64 << 20
CHUNK_SIZE = 4 << 20


@dataclass(frozen=True, slots=True)
class Range:
    """What to load of one partition: [start, end). ``expected`` is the table's offset now, None if it has none.

    ``gap`` are the offsets between the table's and ``start`` that the broker deleted; ``segments`` the sure cuts;
    ``mark`` is what the log will be known by when the next load comes.
    """

    part: BrokerPartition
    address: BrokerAddress
    start: int
    end: int
    expected: int | None
    splits: tuple[Split, ...]
    segments: tuple[int, ...] = ()
    gap: tuple[int, int] | None = None
    mark: Mark | None = None

    @property
    def size(self) -> int:
        """Bytes to load."""
        return self.end - self.start

    @property
    def is_news(self) -> bool:
        """Tell whether the table would change: rows, a gap to record, or a place to begin at."""
        return self.size > 0 or self.gap is not None or (self.expected is None and self.start > 0)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What to load of one topic, and how its payloads are read."""

    topic: str
    form: Format
    by_hour: bool
    ranges: tuple[Range, ...]
    missing: tuple[BrokerPartition, ...] = ()
    """Partitions left out because their broker is not registered now."""
    version: int = -1
    """The table's version when the plan was made: if this plan was published, it was after that."""
    error: str | None = None
    """Why this topic could not be planned; the others are."""

    @property
    def size(self) -> int:
        """Bytes to load."""
        return sum(part.size for part in self.ranges)


@dataclass(frozen=True, slots=True)
class Plan:
    """One load. ``load`` names it for good: in file names, in the commit, in the report."""

    load: str
    created_ms: int
    warehouse: str
    topics: tuple[TopicPlan, ...] = field(default_factory=tuple)
    kind: str = "load"

    @property
    def size(self) -> int:
        """Bytes to load."""
        return sum(topic.size for topic in self.topics)

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is to be done."""
        return not any(part.is_news for topic in self.topics for part in topic.ranges)

    def without_probed_splits(self, topic: str) -> Plan:
        """The same plan, one topic cut only where it is sure."""

        def sure(part: Range) -> Range:
            edges = [part.start, *(s for s in sorted(part.segments) if part.start < s < part.end), part.end]
            return replace(part, splits=tuple(Split(a, b, b) for a, b in pairwise(edges) if b > a))

        topics = (
            replace(t, ranges=tuple(map(sure, t.ranges))) if t.topic == topic else t for t in self.topics
        )
        return replace(self, topics=tuple(topics))

    def to_json(self) -> str:
        """The plan as text, with its hash."""
        return json.dumps(self.as_dict(), indent=1)

    def as_dict(self) -> dict[str, Any]:
        """The plan, with its hash, ready for JSON."""
        body = self._body()
        return {**body, "hash": _hash(body)}

    @property
    def hash(self) -> str:
        """A name for exactly this content."""
        return _hash(self._body())

    def _body(self) -> dict[str, Any]:
        topics = []
        for topic in self.topics:
            ranges = [
                {**asdict(part), "part": str(part.part), "address": asdict(part.address)} for part in topic.ranges
            ]
            entry = {"topic": topic.topic, "format": topic.form.as_dict(), "by_hour": topic.by_hour}
            missing = [str(part) for part in topic.missing]
            entry |= {"version": topic.version, "ranges": ranges, "missing": missing, "error": topic.error}
            topics.append(entry)
        body = {"load": self.load, "kind": self.kind, "created_ms": self.created_ms, "warehouse": self.warehouse}
        return {**body, "topics": topics}


def _hash(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def new_load(created_ms: int) -> str:
    """A name no other load has, in order of time: ``20110612T030000123-1f2e3d4c``."""
    return f"{load_time(created_ms)}-{secrets.token_hex(4)}"


def load_time(time_ms: int) -> str:
    """What the name of a load made at that time begins with."""
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC).strftime('%Y%m%dT%H%M%S')}{time_ms % 1000:03d}"


def read_plan(text: str, where: str) -> Plan:
    """Read a plan back; one that was edited or cut off is refused."""
    try:
        found = json.loads(text)
        claimed = found.pop("hash")
        if _hash(found) != claimed:
            raise PlanChanged(f"{where} was changed after it was written (its hash does not fit); make a new plan")
        topics = tuple(_topic(topic) for topic in found["topics"])
        return Plan(found["load"], found["created_ms"], found["warehouse"], topics, found["kind"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PlanChanged(f"{where} is not a plan of this version: {error!r}; make a new plan") from error


def _topic(found: Mapping[str, Any]) -> TopicPlan:
    ranges = tuple(
        Range(
            part=BrokerPartition.parse(part["part"]),
            address=BrokerAddress(**part["address"]),
            start=part["start"],
            end=part["end"],
            expected=part["expected"],
            splits=tuple(Split(**split) for split in part["splits"]),
            segments=tuple(part["segments"]),
            gap=None if part["gap"] is None else (part["gap"][0], part["gap"][1]),
            mark=None if part["mark"] is None else Mark(**part["mark"]),
        )
        for part in found["ranges"]
    )
    missing = tuple(BrokerPartition.parse(part) for part in found["missing"])
    form = Format.from_dict(found["format"])
    return TopicPlan(
        found["topic"], form, found["by_hour"], ranges, missing, found["version"], found.get("error")
    )
