"""Where a table stands: what every commit of ours says, whole, about each partition.

    first    the first offset that was loaded        next    the next one to load
    mark     some bytes of the partition's log, by which it is known again

It stands twice in each commit: readable, in the commit's notes, so that one small file tells everything; and as
application transactions, which a checkpoint keeps for ever, should another tool remove old log entries:

    etl/<topic>                    how many commits of ours there were; two at once collide here, and one is refused
    etl/<topic>/dead               how many of them changed the quarantine
    etl/<topic>/roster             how many partitions there are
    etl/<topic>/roster/<i>         the i-th of them: broker id and partition
    etl/<topic>/<part>             next
    etl/<topic>/<part>/first       first
    etl/<topic>/<part>/mark-at     where the mark is
    etl/<topic>/<part>/mark        its size and CRC

Paper: §4 (the load stores data and offsets so that a retry neither loses nor duplicates).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kafka2011.types import BrokerPartition

Offsets = Mapping[BrokerPartition, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """The CRC of some bytes of a partition's log: another log has others there."""

    offset: int
    size: int
    crc: int

    @property
    def end(self) -> int:
        """The offset after the last of these bytes."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class Position:
    """How far a partition is loaded: [first, next)."""

    first: int
    next: int
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one version: how far each partition is loaded, and what the last commit of ours noted."""

    version: int
    positions: dict[BrokerPartition, Position] = field(default_factory=dict)
    commits: int = 0
    dead: int = 0
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def offsets(self) -> dict[BrokerPartition, int]:
        """The next offset to load of each partition."""
        return {part: position.next for part, position in self.positions.items()}

    def reaching(self, part: BrokerPartition, start: int, following: int, mark: Mark | None) -> Position:
        """Where a partition stands when a range that begins at ``start`` was added and ``following`` is next."""
        known = self.positions.get(part)
        if known is None:
            return Position(start, following, mark)
        return Position(min(known.first, start), following, mark or known.mark)

    def after(self, following: Mapping[BrokerPartition, Position], changes_dead: bool) -> TableState:
        """The state one commit later."""
        positions = {**self.positions, **following}
        return replace(self, positions=positions, commits=self.commits + 1, dead=self.dead + changes_dead)


def as_dict(state: TableState) -> dict[str, Any]:
    """The state, ready for a commit's notes."""
    partitions = {
        str(part): [at.first, at.next, None if at.mark is None else [at.mark.offset, at.mark.size, at.mark.crc]]
        for part, at in state.positions.items()
    }
    return {"commits": state.commits, "dead": state.dead, "partitions": partitions}


def from_notes(version: int, notes: dict[str, Any]) -> TableState:
    """The state as a commit noted it."""
    found = notes["state"]
    positions = {
        BrokerPartition.parse(text): Position(first, following, None if mark is None else Mark(*mark))
        for text, (first, following, mark) in found["partitions"].items()
    }
    return TableState(version, positions, found["commits"], found["dead"], notes)


def transactions(topic: str, before: TableState, after: TableState) -> Iterator[tuple[str, int]]:
    """What a commit that leads from one state to the other says in application transactions."""
    base = f"etl/{topic}"
    yield base, after.commits
    if after.dead != before.dead:
        yield f"{base}/dead", after.dead
    if len(after.positions) != len(before.positions):
        yield f"{base}/roster", len(after.positions)
    for number, (part, at) in enumerate(after.positions.items()):
        if number >= len(before.positions):
            yield f"{base}/roster/{number}", part.broker_id << 32 | part.partition
        if before.positions.get(part) != at:
            yield f"{base}/{part}", at.next
            yield f"{base}/{part}/first", at.first
            if at.mark is not None:
                yield f"{base}/{part}/mark-at", at.mark.offset
            yield f"{base}/{part}/mark", 0 if at.mark is None else at.mark.size << 32 | at.mark.crc


def from_transactions(topic: str, version: int, transaction: Callable[[str], int | None]) -> TableState:
    """The state as the application transactions tell it."""
    base = f"etl/{topic}"
    positions = {}
    for number in range(transaction(f"{base}/roster") or 0):
        packed = transaction(f"{base}/roster/{number}") or 0
        part = BrokerPartition(packed >> 32, packed & 0xFFFFFFFF)
        mark, at = transaction(f"{base}/{part}/mark") or 0, transaction(f"{base}/{part}/mark-at") or 0
        positions[part] = Position(
            transaction(f"{base}/{part}/first") or 0,
            transaction(f"{base}/{part}") or 0,
            Mark(at, mark >> 32, mark & 0xFFFFFFFF) if mark else None,
        )
    return TableState(version, positions, transaction(base) or 0, transaction(f"{base}/dead") or 0)
