"""What a task is given, and what it gives back: both are pickled on their way."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hadoop_etl.decode import Format
from hadoop_etl.files import WrittenFile
from hadoop_etl.split import Split
from kafka2011.types import BrokerAddress, BrokerPartition


@dataclass(frozen=True, slots=True)
class Work:
    """One split with all a task needs to know; small, and can be pickled."""

    load: str
    topic: str
    part: BrokerPartition
    address: BrokerAddress
    split: Split
    form: Format
    table_uri: str
    dead_uri: str
    by_hour: bool
    load_day: str
    late_before_ms: int
    chunk_size: int
    deadline_ms: int | None = None
    piece: str = ""
    """Set when a split is read again in halves (``halving``), as is all that follows."""
    only: tuple[int, int] | None = None
    """Of the one entry of this split, only the messages with these indices."""
    guilty: tuple[tuple[int, int], ...] = ()
    """Offset and index of messages a worker died of: they are dead rows, and no decoder sees them."""
    sealed: tuple[int, ...] = ()
    """Offsets of wrappers that are not to be opened."""


@dataclass(frozen=True, slots=True)
class LostSplit:
    """A split that could not be loaded, and why. ``died``: its worker did not say, it was gone."""

    work: Work
    reason: str
    died: bool = False


@dataclass(slots=True)
class SplitResult:
    """What a task did. ``end`` is where its walk stopped; ``stopped`` says that the deadline was the reason."""

    work: Work
    end: int
    files: list[WrittenFile] = field(default_factory=list)
    dead_files: list[WrittenFile] = field(default_factory=list)
    rows: int = 0
    dead: int = 0
    late: int = 0
    extra: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    hours: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0
    stopped: bool = False
    seen: int = 0
    """Messages there were, of which a piece may be only some."""


Result = SplitResult | LostSplit
