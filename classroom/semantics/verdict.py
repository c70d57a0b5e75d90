"""What became of numbered records: which are missing, which are there twice, which are not in their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """Counted against 0, 1, … ``records`` - 1 in this order."""

    records: int
    lost: int
    duplicated: int
    misplaced: int
    """Records that came, the first time, after a later one."""

    @property
    def exact(self) -> bool:
        """Each once, and in order."""
        return not (self.lost or self.duplicated or self.misplaced)


def judge(records: int, found: Sequence[int]) -> Verdict:
    """Judge what was found."""
    counts = Counter(found)
    latest, misplaced = -1, 0
    for number in dict.fromkeys(found):
        misplaced += number < latest
        latest = max(latest, number)
    lost = sum(number not in counts for number in range(records))
    return Verdict(records, lost, sum(count - 1 for count in counts.values()), misplaced)
