"""Many runs: the table of the three editions, groups of mixed ones, a failing seed, the smallest run that fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from consumers.sim.scenario import KINDS as FAULTS
from consumers.sim.scenario import Scenario
from consumers.sim.verdict import Verdict, row
from consumers.sim.world import World

KINDS = {
    "faults": "kill, pause, cut, join, leave, grow",
    "lost-replies": "the same, and 2 % of the answers lost",
    "clean": "members join and leave in peace",
    "kills": "kill, join, leave, grow",
    "away": "the same, and members of `sound` are paused and cut off",
    "zombies": "as faults, and operations of an old session go out under the new one",
}
_HAPPENS = {"clean": ("join", "leave"), "kills": ("join", "leave", "kill", "grow")}
_LOST = 0.02


def scenario(seed: int, edition: str, kind: str) -> Scenario:
    """The run of a seed under one kind of misfortune."""
    return Scenario.from_seed(
        seed,
        edition,
        lost_reply_rate=_LOST if kind == "lost-replies" else 0.0,
        kinds=_HAPPENS.get(kind, FAULTS),
        quick_renewal=kind == "zombies",
        spared=("shipped", "0.7") if kind == "away" else (),
    )


def verdicts(edition: str, kind: str, runs: int, first_seed: int = 0) -> list[Verdict]:
    """Simulate ``runs`` seeds; the lanes are dropped, they would fill the memory."""
    return [
        replace(World(scenario(seed, edition, kind)).run(), lanes=()) for seed in range(first_seed, first_seed + runs)
    ]


def compare(
    runs: int, others: int, first_seed: int = 0, told: Callable[[str], None] = lambda line: None
) -> list[dict[str, object]]:
    """``runs`` of the sound edition, half of them with lost replies, a tenth clean; ``others`` of the two others."""
    rows = []
    for edition, n in (("printed", others), ("shipped", others), ("sound", runs)):
        for kind, share in (("faults", n - n // 2), ("lost-replies", n // 2), ("clean", max(1, n // 10))):
            told(f"{edition}, {KINDS[kind]}: {share} runs")
            rows.append(row(edition, kind, verdicts(edition, kind, share, first_seed)))
    return rows


def mixed(
    runs: int, others: int, first_seed: int = 0, told: Callable[[str], None] = lambda line: None
) -> list[dict[str, object]]:
    """``runs`` of mixed groups, in which members of 0.7 are never away for long; ``others`` in which they are too."""
    rows = []
    clean = max(1, runs // 10)
    kills = (runs - clean) // 2
    for kind, n in (("clean", clean), ("kills", kills), ("away", runs - clean - kills), ("faults", others)):
        told(f"mixed, {KINDS[kind]}: {n} runs")
        rows.append(row("mixed", kind, verdicts("mixed", kind, n, first_seed)))
    return rows


def first_failure(edition: str, kind: str, at_most: int = 200) -> Scenario | None:
    """The first seed that breaks a promise, if one of the first ``at_most`` does."""
    for seed in range(at_most):
        candidate = scenario(seed, edition, kind)
        if World(candidate).run().failed:
            return candidate
    return None


def shrink(failing: Scenario) -> Scenario:
    """Leave out faults, then consumers and partitions, one at a time, as long as the run still fails."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(failing):
            if World(candidate).run().failed:
                failing, smaller = candidate, True
                break
    return failing


def _smaller(run: Scenario) -> list[Scenario]:
    fewer = [run.without(fault) for fault in run.faults]
    if run.n_consumers > 1:
        fewer.append(replace(run, n_consumers=run.n_consumers - 1))
    if run.n_partitions > 2:
        fewer.append(replace(run, n_partitions=run.n_partitions - 1))
    return fewer
