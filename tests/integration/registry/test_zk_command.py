"""``kafka2011 zk start``: a ZooKeeper in the foreground."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.waiting import until
from zk_registry.operations import Create, Exists
from zk_registry.session import ZooKeeperSession


def test_it_runs_until_told_and_keeps_its_data(tmp_path: Path) -> None:
    """It serves when the ready-file is there, ends at SIGTERM with 0, and has its data the next time (§3.2)."""
    for round_ in range(2):
        ready = tmp_path / f"ready-{round_}.json"
        command = [sys.executable, "-m", "kafka2011", "zk", "start", "--port", "0"]
        command += ["--data-dir", str(tmp_path / "data"), "--ready-file", str(ready)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                until(lambda: ready.exists() or process.poll() is not None, "it is ready")  # noqa: B023
                connect = json.loads(ready.read_text())["connect"]
                with ZooKeeperSession(connect) as session:
                    if round_ == 0:
                        session.perform(Create("/kept"))
                    assert session.perform(Exists("/kept")) is not None
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0
                assert process.stdout is not None and process.stdout.read() == f"{connect}\n"
            finally:
                process.kill()
