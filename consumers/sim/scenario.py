"""What happens in one simulated run: who comes, leaves, dies, freezes, is cut off, and when. All from one seed.

Paper: §3.2 ("whenever a broker or a consumer is added or removed").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

SESSION_S = 2.0
QUIET_S = 20.0
"""Virtual seconds at the end in which nothing happens any more: the group must come to rest."""

KINDS = ("join", "leave", "kill", "pause", "cut", "grow")
MIXED = ("sound", "shipped", "0.7")
"""Who is in a mixed group: our own two editions that 0.7 can live with, and a model of 0.7 itself."""


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
    spared: tuple[str, ...] = ()
    """Editions whose members are neither paused nor cut off."""

    @property
    def mixed(self) -> bool:
        """Members of several editions in one group; the first three are one of each."""
        return self.edition == "mixed"

    def edition_of(self, n: int) -> str:
        """The edition of the n-th member to join."""
        if not self.mixed:
            return self.edition
        random = Random(f"{self.seed}/editions")
        first = random.sample(MIXED, len(MIXED))
        return first[n] if n < len(first) else random.choices(MIXED, k=n + 1)[n]

    @classmethod
    def from_seed(
        cls,
        seed: int,
        edition: str = "sound",
        *,
        lost_reply_rate: float = 0.0,
        kinds: Sequence[str] = KINDS,
        quick_renewal: bool = False,
        spared: tuple[str, ...] = (),
    ) -> Scenario:
        """Draw a run in which ``kinds`` of faults happen; a mixed group has more than ten partitions."""
        random = Random(seed)
        mixed = edition == "mixed"
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
            n_consumers=random.randint(3 if mixed else 2, 5),
            n_partitions=random.randint(11, 40) if mixed else random.randint(6, 10),
            faults=tuple(faults),
            lost_reply_rate=lost_reply_rate,
            quick_renewal=quick_renewal,
            spared=spared,
        )

    def without(self, fault: Fault) -> Scenario:
        """The same run with one thing less happening."""
        return replace(self, faults=tuple(f for f in self.faults if f is not fault))
