"""Run the writer as a process, and check what a directory holds afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka2011.log import LogStore
from kafka2011.wire import decode_set
from tests.integration.log.writer import SETTINGS, SIZE, payload

ROOT = Path(__file__).parents[3]
RunWriter = Callable[..., tuple[int, int, str]]


@pytest.fixture
def run_writer() -> RunWriter:
    """``run_writer(directory, failpoints="", …)`` -> exit code, last flushed offset it told, its last line."""

    def run(
        directory: Path, *, failpoints: str = "", n_sets: int = 40, preexec: Callable[[], None] | None = None
    ) -> tuple[int, int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "tests.integration.log.writer", str(directory), str(n_sets)],
            cwd=ROOT,
            env={**os.environ, "KAFKA2011_FAILPOINTS": failpoints},
            preexec_fn=preexec,
            capture_output=True,
            text=True,
            timeout=120,
        )
        lines = done.stdout.splitlines()
        flushed = max((int(line.split()[1]) for line in lines if line.startswith("flushed")), default=0)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, flushed, lines[-1] if lines else ""

    return run


def check_directory(directory: Path, flushed: int) -> int:
    """Open the directory as a broker would; everything told as flushed is there, in order, at its offset."""
    store = LogStore(directory, SETTINGS)
    store.open()
    log = store.get_or_create("t", 0)
    offset, end = log.first_offset, log.flushed_offset
    assert end >= flushed, f"flushed up to {flushed}, recovered up to {end}"
    assert end - log.first_offset >= min(end, SETTINGS.retention_size)
    while offset < end:
        with log.read(offset, 100_000) as piece:
            for message in decode_set(piece.read(), offset):
                assert message.payload == payload(message.offset // SIZE)
                offset = message.next_offset
    store.close()
    return end
