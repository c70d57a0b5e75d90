"""The log against its model, with every fault a single machine can have (docs/reliability.md)."""

from __future__ import annotations

from hypothesis.stateful import run_state_machine_as_test

from tests.property.log.machine import LogMachine, quick


def test_the_log_agrees_with_its_model() -> None:
    """Whatever is appended, flushed, retained or lost: visible is the flushed prefix, at stable offsets (§3.1)."""
    run_state_machine_as_test(LogMachine, settings=quick)
