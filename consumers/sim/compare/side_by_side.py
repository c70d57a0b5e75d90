"""One seeded scenario through four protocols.

See docs/group-protocol.md. Paper: §3.2 (Algorithm 1 is the first of the four).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from consumers.sim.actor import Actor
from consumers.sim.compare.classic import CooperativeMember, EagerMember
from consumers.sim.compare.consumer import ConsumerMember
from consumers.sim.compare.figures import Figures, ownership
from consumers.sim.compare.member import ModelMember
from consumers.sim.compare.world import GroupWorld
from consumers.sim.scenario import Scenario
from consumers.sim.verdict import Lane
from consumers.sim.world import World
from zk_registry.operations import Multi

ALGORITHM_1, EAGER, COOPERATIVE, KIP_848 = "algorithm-1", "eager", "cooperative", "kip-848"

MODERN: dict[str, Callable[[GroupWorld, str], ModelMember]] = {
    EAGER: EagerMember,
    COOPERATIVE: CooperativeMember,
    KIP_848: ConsumerMember,
}
PROTOCOLS = (ALGORITHM_1, *MODERN)


@dataclass(frozen=True, slots=True)
class Run:
    """A protocol's run: its figures and who read what, when."""

    scenario: Scenario
    figures: Figures
    lanes: tuple[Lane, ...]


def compare(scenario: Scenario) -> list[Run]:
    """Put all four through the same scenario."""
    return [run(scenario, protocol) for protocol in PROTOCOLS]


def run(scenario: Scenario, protocol: str) -> Run:
    """Put one protocol through a scenario."""
    return _run_algorithm_1(scenario) if protocol == ALGORITHM_1 else _run_modern(scenario, protocol)


def _run_modern(scenario: Scenario, protocol: str) -> Run:
    world = GroupWorld(scenario, MODERN[protocol])
    before: dict[str, int] = {}
    world.at(_first(scenario), lambda: before.update(world.requests))
    world.run()
    counts = {kind: n - before.get(kind, 0) for kind, n in world.requests.items()}
    commits = counts.pop("OffsetCommit", 0)
    beats = counts.pop("idle", 0)
    figures = figures_of(scenario, protocol, world.lanes, sum(counts.values()), beats, commits)
    return Run(scenario, replace(figures, duplicates=world.duplicates, lost=world.lost), tuple(world.lanes))


class _CountingWorld(World):
    """The world of Algorithm 1, telling commits from coordination."""

    n_commits = 0
    seen_before = (0, 0)

    def perform(self, actor: Actor, step: Any, watcher: Callable[[str], None]) -> Any:
        operations = step.operations if isinstance(step, Multi) else (step,)
        self.n_commits += any("/offsets/" in each.path and getattr(each, "value", b"") for each in operations)
        return super().perform(actor, step, watcher)

    def remember(self) -> None:
        """Count from here."""
        self.seen_before = (self.n_operations, self.n_commits)


def _run_algorithm_1(scenario: Scenario) -> Run:
    # A busy application does not hold up Algorithm 1: its rebalance runs in a thread of its own.
    known = replace(scenario, faults=tuple(fault for fault in scenario.faults if fault.kind != "slow"))
    world = _CountingWorld(known)
    world.at(_first(scenario), world.remember)
    verdict = world.run()
    operations, commits = (
        now - before for now, before in zip((world.n_operations, world.n_commits), world.seen_before, strict=True)
    )
    figures = figures_of(scenario, ALGORITHM_1, verdict.lanes, operations - commits, 0, commits)
    return Run(scenario, replace(figures, duplicates=verdict.duplicates, lost=verdict.lost), verdict.lanes)


def _first(scenario: Scenario) -> float:
    return min(fault.at for fault in scenario.faults)


def figures_of(
    scenario: Scenario, protocol: str, lanes: Sequence[Lane], requests: int, heartbeats: int, commits: int
) -> Figures:
    """The figures of a run, but for duplicates and losses, which lanes do not tell."""
    last = max(fault.at for fault in scenario.faults)
    owned = ownership(lanes, _first(scenario), last, scenario.duration_s)
    return Figures(
        protocol,
        requests,
        heartbeats,
        commits,
        owned.stopped,
        owned.moved,
        owned.needless,
        round(owned.unowned_s, 2),
        round(owned.longest_s, 2),
        round(owned.settle_s, 2),
        round(owned.overlap_s, 2),
        0,
        0,
    )
