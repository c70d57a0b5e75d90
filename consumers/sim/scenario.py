"""What happens in one simulated run: who comes, leaves, dies, freezes, is cut off, and when. All from one seed.

Paper: §3.2 ("whenever a broker or a consumer is added or removed").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

SESSION_S = 2.0
QUIET_S = 20.0
"""Virtual seconds at the end in which nothing happens any more: the group must come to rest."""

KINDS = ("join", "leave", "kill", "pause", "cut", "grow")


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing that happens: ``kind`` of KINDS at ``at`` seconds; ``length`` for pauses and cuts.

    ``target`` picks among whoever is alive then, so that a fault still means something after others were dropped.
    """

    at: float
    kind: str
    target: int = 0
    length: float = 0.0

    def __str__(self) -> str:
        return f"{self.at:6.2f} s  {self.kind}" + (f" for {self.length:.2f} s" if self.length else "")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run to simulate. The same scenario and edition give the same run, event by event."""

    seed: int
    edition: str
    n_consumers: int
    n_partitions: int
    faults: tuple[Fault, ...]
    lost_reply_rate: float = 0.0
    duration_s: float = 60.0
    commit_s: float = 1.0
    quick_renewal: bool = False
    """The client library has a new session before the member knows that the old one is over."""

    @classmethod
    def from_seed(
        cls,
        seed: int,
        edition: str = "sound",
        *,
        lost_reply_rate: float = 0.0,
        clean: bool = False,
        quick_renewal: bool = False,
    ) -> Scenario:
        """Draw a run; ``clean`` = members only join and leave in peace."""
        random = Random(seed)
        kinds = KINDS[:2] if clean else KINDS
        faults = []
        at = random.uniform(1.0, 4.0)
        while at < 60.0 - QUIET_S:
            kind = random.choice(kinds)
            length = round(random.uniform(0.5, 5.0), 2) if kind in ("pause", "cut") else 0.0
            faults.append(Fault(round(at, 2), kind, random.randrange(1000), length))
            # Sometimes several in one rebalance, sometimes time to recover.
            at += random.choice((random.uniform(0.01, 0.3), random.uniform(1.0, 6.0)))
        return cls(
            seed,
            edition,
            n_consumers=random.randint(2, 5),
            n_partitions=random.randint(6, 10),
            faults=tuple(faults),
            lost_reply_rate=lost_reply_rate,
            quick_renewal=quick_renewal,
        )

    def without(self, fault: Fault) -> Scenario:
        """The same run with one thing less happening."""
        return replace(self, faults=tuple(f for f in self.faults if f is not fault))
