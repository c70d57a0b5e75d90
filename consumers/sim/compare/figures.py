"""What a run came to, in figures that mean the same for all four protocols.

See docs/group-protocol.md. Everything about ownership is read off the lanes: who read which partition, from when
to when. Counted from the first thing that happens, so that how a group first comes together plays no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median

from consumers.sim.verdict import Lane


@dataclass(frozen=True, slots=True)
class Figures:
    """One protocol in one scenario."""

    protocol: str
    requests: int
    """Coordination only: no idle heartbeats, no commits."""
    heartbeats: int
    commits: int
    stopped: int
    """How often reading a partition ended, for whatever reason."""
    moved: int
    """How often a partition went to someone else than the one before."""
    needless: int
    """How often a partition was stopped and given back to the same reader."""
    unowned_s: float
    """Partition-seconds without a reader."""
    longest_s: float
    """The longest any one partition was without a reader."""
    settle_s: float
    """From the last thing that happened until ownership no longer changed."""
    overlap_s: float
    """Partition-seconds with two readers; one that stands still counts, it does not know better."""
    duplicates: int
    lost: int

    def as_row(self) -> dict[str, object]:
        """For a table; seconds with two digits."""
        return asdict(self)


def typical(runs: Sequence[Figures]) -> Figures:
    """The median of each figure over several runs of one protocol."""
    rows = [asdict(each) for each in runs]
    middle = {name: median(row[name] for row in rows) for name in rows[0] if name != "protocol"}
    whole = {name: round(value, 2) if name.endswith("_s") else round(value) for name, value in middle.items()}
    return Figures(protocol=runs[0].protocol, **whole)


@dataclass(frozen=True, slots=True)
class Ownership:
    """What the lanes say, from ``since`` to ``until``."""

    stopped: int
    moved: int
    needless: int
    unowned_s: float
    longest_s: float
    settle_s: float
    overlap_s: float


def ownership(lanes: Sequence[Lane], since: float, last_fault: float, until: float) -> Ownership:
    """Read the figures off the lanes."""
    until = max((lane.end for lane in lanes), default=until)
    partitions: dict[str, list[Lane]] = {}
    for lane in sorted(lanes, key=lambda lane: (lane.start, lane.end)):
        partitions.setdefault(lane.partition, []).append(lane)
    stopped = moved = needless = 0
    unowned = overlap = longest = 0.0
    settled = last_fault
    for row in partitions.values():
        reach = row[0].end
        reader = row[0].member
        for lane in row[1:]:
            if lane.start >= since:
                moved += lane.member != reader
                needless += lane.member == reader
                settled = max(settled, lane.start)
                gap = lane.start - max(reach, since)
                unowned += max(0.0, gap)
                longest = max(longest, gap)
                overlap += max(0.0, min(reach, lane.end) - lane.start)
            reach, reader = max(reach, lane.end), lane.member
        stopped += sum(since <= lane.end < until for lane in row)
        if reach < until:
            unowned += until - max(reach, since)
            longest = max(longest, until - max(reach, since))
    return Ownership(stopped, moved, needless, unowned, longest, settled - last_fault, overlap)
