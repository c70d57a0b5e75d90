"""The verdicts that are committed, and the report made of them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from classroom.claims.claim import Verdict
from classroom.claims.cli import claims
from classroom.claims.report import write
from classroom.claims.runs import kept, trials

ROOT = Path(__file__).resolve().parents[4]
PUBLISHED = ROOT / "docs" / "results" / "claims"


def test_every_claim_has_a_published_verdict() -> None:
    """Issue 24: the set of a machine is committed, every claim as it is worded now, with figure, machine and date."""
    results = kept(PUBLISHED)

    assert list(results) == [trial.CLAIM.number for trial in trials()]
    assert len(results) >= 22
    for trial in trials():
        found = results[trial.CLAIM.number]
        assert (found["sentence"], found["threshold"]) == (trial.CLAIM.sentence, trial.CLAIM.threshold), found["number"]
        assert found["figure"] and found["machine"] and re.match(r"\d{4}-\d\d-\d\d", found["date"])
        assert not found["twisted"]
    assert sum(found["verdict"] != Verdict.HOLDS for found in results.values()) >= 3


def test_the_report_is_made_of_the_verdicts(tmp_path: Path) -> None:
    """Issue 24: ``kafka2011 claims report`` makes exactly the pages that are committed."""
    for path in write(kept(PUBLISHED), tmp_path):
        assert path.read_text() == (PUBLISHED / path.name).read_text(), path.name


def test_the_report_needs_nothing_else() -> None:
    """Issue 24: one page with everything in it, a plot for each claim, and nothing from elsewhere."""
    page = (PUBLISHED / "report.html").read_text()

    assert not re.search(r"""(src|href)=["']?(https?:|//)|<script|@import|url\(""", page)
    for trial in trials():
        assert f'id="{trial.CLAIM.number}"' in page
    assert page.count("<svg") == len(trials())
    for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        assert len(list(ElementTree.fromstring(picture))) > 5


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["list", "--results", str(PUBLISHED)], 0, "Nine bytes of overhead"),
        (["show", "c7", "--results", str(PUBLISHED)], 0, "retaining warm cache"),
        (["show", "C99"], 1, "there is no claim"),
        (["run"], 2, "name one claim or more"),
        (["report", "--results", "/nowhere"], 3, "no verdicts yet"),
    ],
)
def test_the_command_answers(arguments: list[str], code: int, said: str) -> None:
    """Issue 24: list, show, run and report say what they did, or what to do."""
    done = CliRunner().invoke(claims, arguments)

    assert said in done.output + str(done.exception)
    assert code == (1 if done.exception and not isinstance(done.exception, SystemExit) else done.exit_code)
