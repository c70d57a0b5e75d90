"""A short siege (issue 19 C). ``make siege`` runs all rows and judges the waits; here no clock decides.

The matrix of acknowledgements is in tests/integration/broker/test_ack_matrix.py.
"""

from __future__ import annotations

import pytest

from benchmarks.kills import Acked, judge_is_awake, lost
from benchmarks.siege import attacks_disk, attacks_modern
from benchmarks.siege.attacks_2011 import ROWS as ROWS_2011
from benchmarks.siege.bystander import Waits
from benchmarks.siege.controls import CONTROLS
from benchmarks.siege.field import PEAK_BYTES, Row, Verdict, run
from benchmarks.siege.fuzz import fuzz
from benchmarks.siege.fuzz_targets import CONTROL, TARGETS

QUICK = ("B1 256 KiB of zstd", "M2 ", "B8 ")
ROWS = [row for row in (*ROWS_2011, *attacks_modern.ROWS, *attacks_disk.ROWS) if row.name.startswith(QUICK)]
DEATH, LIE = (next(pair for pair in CONTROLS if word in pair[0].name) for word in ("killed", "promise"))


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_row_holds(row: Row) -> None:
    """The process lives, its memory is bounded, its promises hold, and it serves afterwards."""
    verdict = run(row)
    assert (verdict.survived, verdict.broken) == ("", "")
    assert verdict.peak_bytes <= PEAK_BYTES


@pytest.mark.parametrize(("row", "sign"), [DEATH, LIE], ids=["death", "lie"])
def test_harm_is_seen(row: Row, sign: str) -> None:
    """A siege that finds nothing wrong with a dead broker, or with a broken promise, is no judge."""
    assert any(sign in text for text in run(row).wrong)


def test_the_bars_are_bars() -> None:
    """Each figure beyond its bar is named: 250 ms on every port, 256 MiB, 5 s."""
    good = Verdict("row", "", {"2011": 0.25, "modern": 0.1, "newcomer": 0.2}, PEAK_BYTES, 5.0)
    bad = Verdict("row", "", {"2011": 0.26, "modern": 0.1, "newcomer": 0.3}, PEAK_BYTES + 1, 5.1)
    assert good.wrong == []
    assert len(bad.wrong) == 4


def test_a_stall_counts_for_all_who_would_have_come() -> None:
    """One answer that took a second among a hundred quick ones is no 1 %: a hundred others would have waited too."""
    assert Waits([0.001] * 1000).p99() < 0.01
    assert Waits([0.001] * 1000 + [1.0]).p99() > 0.8


def test_the_fuzzer_finds_what_is_planted() -> None:
    """The control target fails, a parser does not; with atheris or without."""
    assert "planted" in fuzz(CONTROL, 2).crash
    outcome = fuzz("checkpoint", 1)
    assert outcome.crash == ""
    assert outcome.runs > 100
    assert len(TARGETS) > 8


def test_the_judge_of_the_kills_is_awake() -> None:
    """An acknowledgement of a message that is not there, or at another offset, is a loss."""
    acked = [Acked(0, 0, 12 * n, b"%d" % n) for n in range(5)]
    stored = {(0, 0): {one.offset: one.payload for one in acked}}
    assert lost(acked, stored) == []
    assert judge_is_awake(acked, stored)
    stored[0, 0][12] = b"other"
    assert lost(acked, stored) == [acked[1]]
