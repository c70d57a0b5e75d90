"""Many runs, and the control: readers who see everything find broken promises."""

from __future__ import annotations

from typing import NamedTuple

from consumers.sim.transactions.checker import Broken, check
from consumers.sim.transactions.world import World


class Tally(NamedTuple):
    """What many runs came to."""

    runs: int
    faults: int
    transactions: int
    committed: int
    broken: dict[int, str]
    """Seed to what was broken."""


def one(seed: int, *, committed: bool = True, lines: list[str] | None = None) -> tuple[World, Broken | None]:
    """Run a seed and look at it."""
    world = World(seed, lines)
    world.run()
    return world, check(world, committed=committed)


def many(n_runs: int, first_seed: int = 0, *, committed: bool = True) -> Tally:
    """Run seeds one after the other."""
    n_faults = n_transactions = n_committed = 0
    broken = {}
    for seed in range(first_seed, first_seed + n_runs):
        world, found = one(seed, committed=committed)
        outcomes = [outcome for each in world.instances for outcome in each.outcomes.values()]
        n_faults += world.n_faults
        n_transactions += len(outcomes)
        n_committed += sum(outcome is True for outcome in outcomes)
        if found is not None:
            broken[seed] = str(found)
    return Tally(n_runs, n_faults, n_transactions, n_committed, broken)
