"""The demo, as a newcomer runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from kafka2011.child import die_with_parent
from tests.unhandled import check_cluster
from tests.waiting import until

SMALL = ["--brokers", "2", "--partitions", "2", "--consumers", "2", "--members", "1", "--rate", "100"]
COMMAND = [sys.executable, "-m", "kafka2011", "demo", "--no-browser", "--no-spark", *SMALL]


def left_over(directory: Path) -> list[str]:
    """Command lines of living processes that name the demo's directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended while we looked
        if str(directory) in line:
            found.append(line)
    return found


def test_a_short_demo_adds_up_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """What was produced is what is stored, delivered to both groups and loaded; the audit agrees (§3.3, §4)."""
    place = tmp_path / "demo"
    ran = subprocess.run(
        [*COMMAND, "--for", "8s", "--dir", str(place), "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=170,
        preexec_fn=die_with_parent,
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    summary = json.loads(ran.stdout)

    assert summary["problems"] == []
    assert summary["sent"] == summary["stored"] == summary["loaded"]["rows"] > 0
    assert {group["delivered"] for group in summary["groups"].values()} == {summary["sent"]}
    assert summary["loaded"]["audit"] == "complete"
    assert left_over(place) == []
    check_cluster(place)
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def test_ctrl_c_stops_everything(tmp_path: Path) -> None:
    """Ctrl-C ends the demo in good order and no process is left."""
    place = tmp_path / "demo"
    demo = subprocess.Popen(
        [*COMMAND, "--dir", str(place)], cwd=tmp_path, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent
    )
    try:
        until(lambda: list(place.glob("ready/member-0.json")) or demo.poll() is not None, "everything runs")
        assert demo.poll() is None
        demo.send_signal(signal.SIGINT)
        assert demo.wait(90) == 0
    finally:
        demo.kill()
        demo.wait()

    assert left_over(place) == []
