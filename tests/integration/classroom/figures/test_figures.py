"""Figures from things that run now. Issue 24 point 6, issue 22 B15."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from classroom.figures import log, sequence
from classroom.figures.cli import FIGURES, figures
from tests.unit.classroom.figures.test_pictures import titles, words


def test_figure_2_is_drawn_from_a_live_log(tmp_path: Path) -> None:
    """§3.1 Figure 2: the command writes a picture of real files, with the unflushed tail of the last one."""
    found = CliRunner().invoke(figures, ["log", "--out", str(tmp_path)])
    drawn = (tmp_path / "log.svg").read_text()

    assert found.exit_code == 0, found.output
    assert len(titles(drawn)) == log.FLUSHED + log.UNFLUSHED
    assert sum(says.endswith(".kafka") for says in words(drawn)) >= 2
    assert not any("from 0 on" in says for says in words(drawn))


def test_the_group_protocol_is_seen_on_the_wire() -> None:
    """Two real members: join, sync, heartbeats, and the one that tells the first of the second."""
    drawn = words(sequence.draw())

    assert {"ada", "bob", "JoinGroup", "SyncGroup", "Heartbeat", "rebalance!"} <= set(drawn)


def test_every_figure_of_the_issue_is_there() -> None:
    """Issue 24 point 6 names them."""
    assert set(FIGURES) == {"system", "log", "copies", "ownership", "generations", "offsets", "sequence"}
