"""What a simulated run came to, and what many of them came to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lane:
    """``member`` read ``partition`` from ``start`` to ``end`` (virtual seconds)."""

    member: str
    partition: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """One run: what went wrong, and how much there was of it."""

    seed: int
    edition: str
    orphans: int
    unsettled: int
    """Partitions that at the end do not have exactly one reader who also holds the owner node."""
    lost: int
    non_owner_commits: int
    backward_commits: int
    gave_up: int
    duplicates: int
    messages: int
    rebalances: int
    operations: int
    events: int
    doubled: int = 0
    """Partitions that two members read at the same time though neither was ever away: the promise is one reader."""
    doubled_s: float = 0.0
    """How long, over all partitions (virtual seconds)."""
    lanes: tuple[Lane, ...] = ()

    @property
    def failed(self) -> bool:
        """Anything the sound edition promises never to do."""
        return bool(self.orphans or self.unsettled or self.lost or self.non_owner_commits or self.backward_commits)

    def __str__(self) -> str:
        wrong = {
            "partitions without a reader": self.orphans,
            "partitions whose reader and owner differ": self.unsettled - self.orphans,
            "messages never delivered": self.lost,
            "commits by a non-owner": self.non_owner_commits,
            "offsets that went back": self.backward_commits,
            "members that gave up": self.gave_up,
        }
        told = ", ".join(f"{count} {what}" for what, count in wrong.items() if count)
        twice = f"{self.doubled} partitions had two readers at once, for {self.doubled_s:.1f} s in all"
        told = told or (twice if self.doubled else "nothing went wrong")
        why = f" ({twice})" if self.doubled and twice != told else ""
        return (
            f"seed {self.seed}, {self.edition}: {told}; {self.messages} messages, "
            f"{self.duplicates} delivered again{why}, {self.rebalances} rebalances"
        )


def overlaps(lanes: Iterable[Lane]) -> dict[str, float]:
    """Partition -> how long two members or more read it at the same time."""
    found: dict[str, float] = {}
    read_until: dict[str, float] = {}
    for lane in sorted(lanes, key=lambda lane: lane.start):
        until = read_until.get(lane.partition, lane.start)
        if (both := min(until, lane.end) - lane.start) > 1e-9:
            found[lane.partition] = found.get(lane.partition, 0.0) + both
        read_until[lane.partition] = max(until, lane.end)
    return found


def row(edition: str, kind: str, verdicts: Iterable[Verdict]) -> dict[str, object]:
    """One line of the comparison: runs in which each thing went wrong."""
    runs = list(verdicts)
    messages = sum(v.messages for v in runs) or 1
    return {
        "edition": edition,
        "runs": len(runs),
        "faults": kind,
        "orphans": sum(1 for v in runs if v.orphans),
        "unsettled": sum(1 for v in runs if v.unsettled),
        "lost": sum(1 for v in runs if v.lost),
        "non_owner_commits": sum(1 for v in runs if v.non_owner_commits),
        "offset_back": sum(1 for v in runs if v.backward_commits),
        "gave_up": sum(1 for v in runs if v.gave_up),
        "duplicates": f"{100 * sum(v.duplicates for v in runs) / messages:.1f} %"
        if any(v.duplicates for v in runs)
        else "0",
        "rebalances": sum(v.rebalances for v in runs),
    }
