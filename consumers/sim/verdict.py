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
        told = ", ".join(f"{count} {what}" for what, count in wrong.items() if count) or "nothing went wrong"
        return (
            f"seed {self.seed}, {self.edition}: {told}; {self.messages} messages, {self.duplicates} delivered again, "
            f"{self.rebalances} rebalances"
        )


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
