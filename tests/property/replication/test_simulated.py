"""Replication in virtual time: no promise is broken, and every older rule is found out."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from consumers.cli.sim import sim
from consumers.sim.replication.rules import Rules, name_of
from consumers.sim.replication.runs import many, rules_called
from consumers.sim.replication.world import World

FOUND_OUT = {
    "cut_at_high_watermark": 24,
    "forget_own_epoch": 24,
    "same_leader_same_history": 40,
    "shrink_before_stored": 1,
    "no_raise_after_shrink": 11,
    "obey_old_controllers": 45,
    "write_unfenced": 4,
    "elect_anybody": 8,
    "empty_isr": 8,
    "expose_unreplicated": 1,
    "trust_answered_offset": 1294,
    "retry_with_new_version": 1,
}
"""A rule of an older Kafka, and a seed with which it breaks a promise."""


def test_no_promise_is_broken() -> None:
    """Nothing acknowledged is lost, nothing read changes, replicas agree (``make sim``: in 10,000 runs)."""
    tally = many(40, first_seed=5_000)
    assert tally.violations == {}
    assert tally.acknowledged > 1_000


@pytest.mark.parametrize("name", sorted(FOUND_OUT))
def test_older_rules_are_found_out(name: str) -> None:
    """A bug that real Kafka had breaks a promise in the simulator (control of the checker)."""
    rules: Rules = rules_called(name)
    assert World(FOUND_OUT[name], rules).run() is not None, name_of(rules)
    assert World(FOUND_OUT[name]).run() is None


def test_a_lesson_is_told() -> None:
    """``sim replication --lesson`` prints a run that loses data under the old rule and none under today's (KIP-101)."""
    told = CliRunner().invoke(sim, ["replication", "--lesson", "high-watermark-truncation"])
    assert told.exit_code == 0, told.output
    assert "VIOLATION" in told.output
    assert told.output.rstrip().endswith("with today's rule: every promise holds")
