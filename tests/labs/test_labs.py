"""The six labs: nothing for nothing, everything for the model solution, and each mistake found for its own reason."""

from __future__ import annotations

from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pytest

from classroom.labs.catalogue import LABS
from classroom.labs.grading import grade
from classroom.labs.lab import Lab
from tests.labs.packages import WRONG, empty, mistakes_in_the_guide, model, wrong

MISTAKES = [(lab, mistake) for lab in LABS for mistake in WRONG[lab.number]]
GRADED_WITHIN_S = 60


def _named(value: object) -> str:
    return f"lab{value.number}" if isinstance(value, Lab) else str(value)


@pytest.mark.parametrize("lab", LABS, ids=_named)
def test_an_empty_package_gets_nothing(lab: Lab, tmp_path: Path) -> None:
    """Issue 24: the hand-out as it is gets 0 points."""
    report = grade(lab, empty(lab, tmp_path), "anna")

    assert not report.refused
    assert report.points == 0


@pytest.mark.parametrize("lab", LABS, ids=_named)
def test_the_model_solution_gets_everything(lab: Lab, tmp_path: Path) -> None:
    """Issue 24: the model solution gets 100 points, for less than a minute of CPU time, however busy the machine is."""
    before = getrusage(RUSAGE_CHILDREN)
    report = grade(lab, model(lab, tmp_path), "anna")
    after = getrusage(RUSAGE_CHILDREN)

    assert [(outcome.test.name, outcome.reason) for outcome in report.failures] == []
    assert report.points == 100
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < GRADED_WITHIN_S


@pytest.mark.parametrize(("lab", "mistake"), MISTAKES, ids=_named)
def test_a_mistake_is_found_for_its_reason(lab: Lab, mistake: str, tmp_path: Path) -> None:
    """Issue 24: a typical wrong solution gets some points and fails exactly the tests that the guide names."""
    report = grade(lab, wrong(lab, mistake, tmp_path), "anna")

    assert {outcome.test.name for outcome in report.failures} == mistakes_in_the_guide(lab)[mistake]
    assert 0 < report.points < 100


@pytest.mark.parametrize("lab", LABS, ids=_named)
def test_pages_and_tests_agree(lab: Lab) -> None:
    """The page lists every test with its points, the guide every mistake; seen tests have hints; 100 points in all."""
    page = (lab.folder / "README.md").read_text()
    rows = [row for row in page.splitlines() if row.startswith("| ") and row.endswith(("| yes |", "| no |"))]

    assert [(int(row.split("|")[1]), row.endswith("| yes |")) for row in rows] == [
        (test.points, test.seen) for test in lab.tests
    ]
    assert lab.points == 100
    assert all(test.hint for test in lab.seen())
    assert mistakes_in_the_guide(lab).keys() == WRONG[lab.number].keys()
    assert len(WRONG[lab.number]) == 10
