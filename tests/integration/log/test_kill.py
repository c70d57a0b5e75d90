"""kill -9 at every durable step, again and again: nothing flushed is lost (docs/reliability.md)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.log.conftest import RunWriter, check_directory

STEPS = [
    "log.append.before_write@7",
    "log.append.after_write@8",
    "log.flush.before_fsync@9",
    "log.flush.after_fsync@9",
    "log.roll.before_create@3",
    "log.roll.after_create@3",
    "log.checkpoint.before_rename@4",
    "log.checkpoint.after_rename@4",
    "log.retention.before_unlink@2",
    "log.retention.after_unlink@2",
    "log.close.before_marker@1",
]


@pytest.mark.parametrize("step", STEPS)
def test_killed_at(step: str, tmp_path: Path, run_writer: RunWriter) -> None:
    """Killed at this step, a restart alone recovers, loses nothing flushed, and the log goes on (§3.1)."""
    name, _, hit = step.partition("@")
    code, flushed, _ = run_writer(tmp_path, failpoints=f"{name}=kill@{hit}")
    assert code == -signal.SIGKILL, "the failpoint was not reached"
    end = check_directory(tmp_path, flushed)
    code, flushed, last = run_writer(tmp_path, n_sets=3)
    assert (code, last) == (0, "end")
    assert check_directory(tmp_path, flushed) == flushed > end


def test_killed_during_recovery(tmp_path: Path, run_writer: RunWriter) -> None:
    """A recovery that is killed before and after its cut is simply done again (docs/reliability.md)."""
    _, flushed, _ = run_writer(tmp_path, failpoints="log.flush.before_fsync=kill@5")
    last = max((tmp_path / "t-0").iterdir())
    for step in ("before", "after"):
        with open(last, "ab") as file:
            file.write(b"\0\0\0\x50 torn")
        code, _, _ = run_writer(tmp_path, failpoints=f"log.recovery.{step}_truncate=kill")
        assert code == -signal.SIGKILL
    check_directory(tmp_path, flushed)
