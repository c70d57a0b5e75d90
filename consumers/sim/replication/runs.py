"""Many runs, smaller runs, and the lessons: runs in which an older rule loses data and today's does not."""

from __future__ import annotations

from typing import NamedTuple

from consumers.sim.replication.checker import Violation
from consumers.sim.replication.faults import Fault, random_faults
from consumers.sim.replication.rules import MUTANTS, TODAY, Rules, name_of
from consumers.sim.replication.world import World


class Tally(NamedTuple):
    """What many runs came to."""

    runs: int
    acknowledged: int
    faults: int
    violations: dict[int, str]
    """Seed to what was broken."""


def many(n_runs: int, first_seed: int = 0, rules: Rules = TODAY) -> Tally:
    """Run seeds one after the other."""
    n_acked = n_faults = 0
    violations = {}
    for seed in range(first_seed, first_seed + n_runs):
        world = World(seed, rules)
        violation = world.run()
        n_acked += len(world.checker.acked)
        n_faults += len(world.faults or ())
        if violation is not None:
            violations[seed] = str(violation)
    return Tally(n_runs, n_acked, n_faults, violations)


def first_failure(rules: Rules, n_seeds: int = 1_000) -> int | None:
    """The first seed with which ``rules`` break a promise."""
    return next((seed for seed in range(n_seeds) if World(seed, rules).run() is not None), None)


def shrink(seed: int, rules: Rules) -> list[Fault]:
    """The faults of a failing run without those it does not need."""
    faults = random_faults(seed, World.replicas)
    wanted = _promise(seed, rules, faults)
    for fault in reversed(list(faults)):
        fewer = [one for one in faults if one != fault]
        if _promise(seed, rules, fewer) == wanted:
            faults = fewer
    return faults


def _promise(seed: int, rules: Rules, faults: list[Fault]) -> str | None:
    violation = World(seed, rules, faults).run()
    return None if violation is None else violation.promise


class Lesson(NamedTuple):
    """A rule of an older Kafka, and a seed that shows what it costs."""

    rules: Rules
    seed: int
    story: str


class Shown(NamedTuple):
    """A lesson as it ran: with the old rule, and with today's."""

    faults: list[Fault]
    then: list[str]
    broken: Violation | None
    today: Violation | None


def show_lesson(lesson: Lesson) -> Shown:
    """Run the smallest set of faults that breaks the old rule, under both rules."""
    faults = shrink(lesson.seed, lesson.rules)
    then = World(lesson.seed, lesson.rules, faults, lines=[])
    broken = then.run()
    today = World(lesson.seed, TODAY, faults).run()
    return Shown(faults, then.lines or [], broken, today)


def rules_called(name: str) -> Rules:
    """A mutant by its name. Raises KeyError."""
    return {name_of(rules): rules for rules in MUTANTS}[name]
