"""The tests of lab 6 that only the grader runs: seeded runs, and budgets against the project's own consumer."""

from __future__ import annotations

from dataclasses import replace

from classroom.labs.lab import Bench, Tests, check, expect
from classroom.labs.lab6.arena import drawn, judged, moved, plain, without_reader_s
from consumers.sim.scenario import KINDS, Fault, Scenario
from consumers.sim.verdict import Verdict
from consumers.sim.world import World

UNSEEN = Tests(seen=False)
_PEACE = ("join", "leave")
_RUNS = 4


def seeds(bench: Bench, n: int) -> list[int]:
    """Numbers of runs, a student's own."""
    return [bench.random.randrange(10**6) for _ in range(n)]


@UNSEEN.add(points=6, limit_s=30.0)
def odd_numbers(bench: Bench) -> None:
    """Shares that do not come out even differ by one at most; with more consumers than partitions all are read."""
    for n_consumers, n_partitions in ((4, 10), (6, 4)):
        scenario = plain(n_consumers, n_partitions)
        verdict = judged(bench, scenario)
        last = [lane.member for lane in verdict.lanes if lane.end >= scenario.duration_s - 1]
        shares = sorted(last.count(member) for member in set(last))
        check(
            shares[-1] - (shares[0] if len(shares) == n_consumers else 0) <= 1,
            f"{n_partitions} partitions among {n_consumers} consumers are shared as {shares}",
        )
        expect(len(last), n_partitions, f"partitions with a reader, of {n_partitions} among {n_consumers} consumers")


@UNSEEN.add(points=12, limit_s=30.0)
def many_peaceful_runs(bench: Bench) -> None:
    """Consumers only join and leave: never two readers at once, nothing lost, and the group comes to rest."""
    for seed in seeds(bench, _RUNS):
        judged(bench, drawn(seed, _PEACE), one_reader=True)


@UNSEEN.add(points=14, limit_s=30.0)
def many_runs_with_faults(bench: Bench) -> None:
    """Kills, pauses, cuts, joins, leaves and growing brokers, several in one rebalance."""
    for seed in seeds(bench, _RUNS + 3):
        judged(bench, drawn(seed, KINDS))


@UNSEEN.add(points=10, limit_s=30.0)
def answers_get_lost(bench: Bench) -> None:
    """The same with three of a hundred answers lost: done or not, nobody knows."""
    for seed in seeds(bench, _RUNS + 2):
        judged(bench, drawn(seed, KINDS, lost_reply_rate=0.03))


def both(bench: Bench, scenario: Scenario) -> tuple[Verdict, Verdict]:
    """The student's run and that of the project's own consumer, of the same scenario."""
    return judged(bench, scenario), World(replace(scenario, edition="sound")).run()


@UNSEEN.add(points=6, limit_s=30.0)
def budget_of_operations(bench: Bench) -> None:
    """At most twice the registry operations of the project's own consumer, over the same runs."""
    pairs = [both(bench, drawn(seed, _PEACE)) for seed in seeds(bench, 2)]
    mine, theirs = (sum(pair[i].operations for pair in pairs) for i in (0, 1))
    check(mine <= 2 * theirs, f"{mine} registry operations; the project's own consumer needs {theirs} in the same runs")


@UNSEEN.add(points=8, limit_s=30.0)
def budget_of_standstill(bench: Bench) -> None:
    """Not much longer without a reader, and not many more moves, than the project's own consumer."""
    grows = plain(3, 8, Fault(4.0, "join"), Fault(9.0, "grow"), Fault(13.0, "leave", 1))
    runs = [grows, *(drawn(seed, _PEACE) for seed in seeds(bench, 1))]
    pairs = [both(bench, one) for one in runs]
    mine, theirs = (
        sum(without_reader_s(pair[i].lanes, one.duration_s) for pair, one in zip(pairs, runs, strict=True))
        for i in (0, 1)
    )
    allowed = 1.5 * theirs + sum(len({lane.partition for lane in pair[0].lanes}) for pair in pairs)
    check(
        mine <= allowed,
        f"{mine:.1f} s without a reader over all partitions; the project's own consumer: {theirs:.1f} s",
    )
    changed, best = (sum(moved(pair[i].lanes) for pair in pairs) for i in (0, 1))
    check(
        changed <= 1.3 * best + 4,
        f"partitions changed hands {changed} times; with the project's own consumer {best} times",
    )
