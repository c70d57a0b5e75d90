"""One scenario through four protocols: the figures, and that the same seed gives the same run."""

from __future__ import annotations

import json
import xml.dom.minidom
from pathlib import Path

import pytest
from click.testing import CliRunner

from consumers.cli.compare import compare as command
from consumers.sim.compare.figures import ownership, typical
from consumers.sim.compare.scenarios import SCENARIOS
from consumers.sim.compare.side_by_side import COOPERATIVE, EAGER, KIP_848, PROTOCOLS, compare, run
from consumers.sim.verdict import Lane


def test_figures_are_read_off_the_lanes() -> None:
    """Gaps, overlaps, moves and needless stops, counted by hand. See docs/group-protocol.md."""
    lanes = [
        Lane("a", "0", 0.0, 10.0),
        Lane("b", "0", 12.0, 20.0),  # moved, two seconds nobody
        Lane("b", "0", 21.0, 40.0),  # given back: needless
        Lane("a", "1", 0.0, 15.0),
        Lane("c", "1", 14.0, 40.0),  # one second two readers
    ]
    found = ownership(lanes, since=5.0, last_fault=10.0, until=40.0)
    assert (found.stopped, found.moved, found.needless) == (3, 2, 1)
    assert (found.unowned_s, found.longest_s, found.overlap_s, found.settle_s) == (3.0, 2.0, 1.0, 11.0)


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_lost_in_any_scenario_under_any_protocol(name: str) -> None:
    """Every message reaches an application; without a crash or a pause, exactly once. See docs/group-protocol.md."""
    for each in compare(SCENARIOS[name](1)):
        assert each.figures.lost == 0
        if name not in ("crash", "pause"):
            assert each.figures.duplicates == 0
            assert each.figures.overlap_s == 0


def test_the_shape_of_the_comparison() -> None:
    """A fourth member joins three: eager stops all twelve partitions, the others only the three that move; KIP-848
    takes the fewest requests; with one slow member everyone waits under eager only. See docs/group-protocol.md."""
    joins = {each.figures.protocol: each.figures for each in compare(SCENARIOS["one-joins"](1))}
    assert {name: figures.stopped for name, figures in joins.items()} == {
        "algorithm-1": 12,
        EAGER: 12,
        COOPERATIVE: 3,
        KIP_848: 3,
    }
    assert joins[KIP_848].requests < joins[EAGER].requests < joins[COOPERATIVE].requests < joins["algorithm-1"].requests
    slow = {p: typical([run(SCENARIOS["slow-member"](s), p).figures for s in range(5)]) for p in PROTOCOLS}
    assert slow[KIP_848].unowned_s < slow[COOPERATIVE].unowned_s < slow[EAGER].unowned_s


def test_a_seed_fixes_the_run() -> None:
    """Same scenario, same seed: the same lanes, event by event."""
    for protocol in PROTOCOLS:
        assert run(SCENARIOS["pause"](7), protocol) == run(SCENARIOS["pause"](7), protocol)


def test_the_command_prints_draws_and_exports(tmp_path: Path) -> None:
    """A table, a picture on one time axis, JSON."""
    picture = tmp_path / "lanes.svg"
    shown = CliRunner().invoke(command, ["-s", "crash", "--svg", str(picture)])
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == list(PROTOCOLS)
    document = xml.dom.minidom.parse(str(picture))
    assert len(document.getElementsByTagName("rect")) > 40
    exported = json.loads(CliRunner().invoke(command, ["-s", "crash", "--runs", "2", "--json"]).stdout)
    assert [row["protocol"] for row in exported["crash"]] == list(PROTOCOLS)
    assert exported["crash"][0]["lanes"]
