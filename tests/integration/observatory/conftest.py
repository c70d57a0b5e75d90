"""An observatory of a recorded run, as a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers.cluster.processes import Process, Processes
from consumers.observatory.frames import save
from tests.unit.observatory.scenes import film, frame


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page that replays three frames."""
    directory: Path = tmp_path_factory.mktemp("observatory")
    recording = directory / "run.jsonl"
    seen = film(frame(1000), frame(2000, {"0-0": "bob"}), frame(3000, {"0-0": "bob", "0-1": "bob"}))
    recording.write_bytes(b"".join(save(seen)))
    processes = Processes(directory, with_parent=True)
    arguments = ["kafka2011", "observatory", "--replay", str(recording), "--port", "0"]
    page = processes.start(Process("observatory", "observatory", arguments))
    yield f"127.0.0.1:{page.ready['port']}"
    processes.stop(["observatory"])
