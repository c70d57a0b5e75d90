"""The comparison with real processes."""

from __future__ import annotations

from consumers.sim.compare.live import run_live
from consumers.sim.compare.side_by_side import KIP_848
from consumers.sim.scenario import Fault, Scenario


def test_a_member_that_leaves_in_peace_costs_nothing_twice() -> None:
    """Two processes share four partitions, one leaves: the other reads on, nothing is read twice.

    See docs/group-protocol.md.
    """
    scenario = Scenario(1, "", n_consumers=2, n_partitions=4, faults=(Fault(1.0, "leave"),))
    run = run_live(scenario, KIP_848, rest_s=1.0, session_s=300.0)
    assert {lane.member for lane in run.lanes} == {"c0", "c1"}
    assert run.figures.duplicates == 0
    assert run.figures.stopped >= 2
