"""Whatever happens to a group, the coordinator keeps its promises."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consumers.sim.compare.side_by_side import MODERN
from consumers.sim.scenario import QUIET_S, SESSION_S, Fault, Scenario
from tests.property.group_protocol.observer import watch

LAST_S = 14.0

kinds = st.sampled_from(["join", "leave", "kill", "pause", "cut", "grow", "slow"])


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Any number of things at any time; then a quiet time, in which the group must come to rest."""
    faults = []
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(kinds)
        length = draw(st.floats(0.3, 5.0)) if kind in ("pause", "cut", "slow") else 0.0
        faults.append(Fault(draw(st.floats(0.0, LAST_S)), kind, draw(st.integers(0, 5)), length))
    return Scenario(
        draw(st.integers(0, 1 << 30)),
        "",
        n_consumers=draw(st.integers(1, 5)),
        n_partitions=draw(st.integers(1, 9)),
        faults=tuple(faults),
        lost_reply_rate=draw(st.sampled_from([0.0, 0.02, 0.1])),
        duration_s=LAST_S + 5.0 + SESSION_S + QUIET_S + 12.0,
    )


@pytest.mark.parametrize("protocol", MODERN)
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(scenario=scenarios())
def test_no_two_owners_no_zombie_commits_and_every_rebalance_ends(protocol: str, scenario: Scenario) -> None:
    """One owner per partition and generation, no commit of an old generation or epoch accepted, no offset moved back,
    nothing lost, and after a quiet time every partition has one reader and shares are even.

    See docs/group-protocol.md.
    """
    watch(scenario, protocol, clean=False)


@pytest.mark.parametrize("protocol", MODERN)
def test_coming_and_going_in_peace_costs_no_duplicate(protocol: str) -> None:
    """With members that only join and leave, nothing is delivered twice and nobody reads beside another.

    See docs/group-protocol.md.
    """
    for seed in range(8):
        watch(Scenario.from_seed(seed, kinds=("join", "leave")), protocol, clean=True)
