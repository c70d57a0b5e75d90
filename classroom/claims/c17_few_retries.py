"""§3.2: without a master, and yet settled after a few retries."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import replace

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from consumers.algorithm1.editions import EDITIONS, SOUND
from consumers.events import RebalanceDone
from consumers.sim.scenario import Fault, Scenario
from consumers.sim.world import World
from kafka2011.events import Entry

CLAIM = Claim(
    number="C17",
    section="3.2",
    title="No master, a few retries",
    sentence="In practice, the rebalance process often stabilizes after only a few retries.",
    experiment="Groups of 2 to 16 consumers come together at once and are joined by more, in seeded runs of the "
    "real rebalance code on a virtual clock, with notifications that arrive at different times. Every "
    "rebalance's attempts are counted.",
    threshold="95 of 100 rebalances need at most four retries, for every size of group, and every run settles",
    twist="nobody \"waits a bit\": who was refused tries again at once",
    dissent="Slower notifications, or many more consumers than 16: the registry operations of a change grow with "
    "members times partitions, and each change stops everybody.",
    later="A coordinator on a broker hands out the shares (JoinGroup, KIP-848): no retries, and a master to "
    "worry about.",
    code=("consumers/algorithm1/rebalance.py", "consumers/algorithm1/editions.py"),
    tests=("tests/property/consumers/test_simulation.py",),
    walk="docs/walks/6-algorithm-1.md",
)

FEW = 4
PARTITIONS = 24


class _CountingWorld(World):
    """Notes the attempts of every rebalance."""

    attempts: Counter[int]

    def _join(self) -> None:
        super()._join()
        self.actors[-1].member._journal.subscribe(self._note)  # type: ignore[union-attr]

    def _note(self, entry: Entry) -> None:
        if isinstance(entry.event, RebalanceDone):
            self.attempts[entry.event.attempts] += 1


def experiment(bench: Bench) -> Figures:
    """Join storms of several sizes."""
    bench.plot("consumers", "retries of a rebalance, 95 of 100 need no more")
    edition = "impatient" if bench.twisted else "sound"
    EDITIONS["impatient"] = replace(SOUND, name="impatient", back_off=lambda attempt, random: 0.001)
    sizes, seeds = (2, 6) if bench.scale.value == 0 else (2, 4, 8, 16), bench.size(4, 10, 40)
    found, unsettled, operations = {}, 0, {}
    for size in sizes:
        attempts: Counter[int] = Counter()
        ops = []
        for seed in range(seeds):
            storm = tuple(Fault(10.0 + 0.01 * n, "join") for n in range(size // 2))
            world = _CountingWorld(Scenario(seed, edition, size, PARTITIONS, storm, duration_s=35.0))
            world.attempts = attempts
            verdict = world.run()
            unsettled += verdict.failed
            ops.append(verdict.operations)
        found[str(size)] = dict(sorted(attempts.items()))
        operations[str(size)] = round(statistics.median(ops))
        bench.point("retries", size, _retries_of_95(attempts))
    del EDITIONS["impatient"]
    return {"attempts": found, "unsettled": unsettled, "runs": seeds * len(sizes), "operations": operations}


def judge(figures: Figures) -> Judgement:
    """The worst size of group counts."""
    counts = {size: Counter({int(k): v for k, v in one.items()}) for size, one in figures["attempts"].items()}
    retries = {size: _retries_of_95(one) for size, one in counts.items()}
    worst = max(retries, key=lambda size: retries[size])
    most = max(max(one) for one in counts.values()) - 1
    figure = (
        f"95 of 100 rebalances need at most {retries[worst]} retries (groups of {worst}); the most was {most}; "
        f"{figures['unsettled']} of {figures['runs']} runs did not settle"
    )
    spread = "exact: seeded, the same in every run"
    holds = retries[worst] <= FEW and not figures["unsettled"]
    return Judgement(Verdict.HOLDS if holds else Verdict.FAILS, figure, spread)


def _retries_of_95(attempts: Counter[int]) -> int:
    seen = 0
    for count, times in sorted(attempts.items()):
        seen += times
        if seen >= 0.95 * attempts.total():
            return count - 1
    return 0
