"""Standby brokers in virtual time: no promise is broken, and every changed rule is found out (issue 27, point 5)."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from consumers.cli.sim import sim
from consumers.sim.standby.world import World, many, rules_called

FOUND_OUT = {
    "elect_any_member": (2, "steady"),
    "no_epochs": (8, "alike"),
    "expose_early": (0, "held"),
    "half_entries": (0, "entries"),
    "serve_after_session": (3, "one"),
    "any_disk": (10, "steady"),
}
"""A changed rule, a seed with which it breaks a promise, and which."""


def test_no_promise_is_broken() -> None:
    """Nothing acknowledged is lost, nothing seen changes, members agree, one serves (``make sim``: 3,000 runs)."""
    acknowledged, broken = many(25, first_seed=5_000)
    assert broken == {}
    assert acknowledged > 1_000


@pytest.mark.parametrize("name", sorted(FOUND_OUT))
def test_changed_rules_are_found_out(name: str) -> None:
    """The mutants of issue 27, build 6, and an in-sync set without disks: each breaks its promise."""
    seed, promise = FOUND_OUT[name]
    violation = World(seed, rules_called(name)).run()
    assert violation is not None
    assert violation.promise == promise
    assert World(seed).run() is None


def test_a_run_is_told() -> None:
    """``sim standby --seed`` prints who led when, and what was broken."""
    told = CliRunner().invoke(sim, ["standby", "--seed", "2", "--rule", "elect_any_member"])
    assert told.exit_code == 1, told.output
    assert "is elected" in told.output
    assert told.output.splitlines()[-1].startswith("broken: steady")
