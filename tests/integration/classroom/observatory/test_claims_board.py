"""The claims on the page, in a real browser. Issue 24 point 3."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from classroom.claims.board import Board, Busy
from classroom.claims.runs import trials
from kafka2011.errors import Kafka2011Error
from tests.integration.classroom.observatory.chromium import Chromium
from tests.integration.classroom.observatory.conftest import Watched


def test_a_claim_is_run_again_from_its_card(browser: Chromium, watched: Watched) -> None:
    """Issue 24: a card for each claim with its last verdict; *run again* draws the plot, then the verdict."""
    browser.open(f"{watched.page}#claims")
    browser.wait(f"document.querySelectorAll('#claims .card').length === {len(trials())}", "all cards are there")
    before = browser.text("#claim-C02")
    assert "70% more space" in before and "holds with a footnote" in before
    browser.click("#run-C02")
    browser.wait("document.querySelectorAll('#claim-C02 .plot rect').length >= 2", "the plot is drawn")
    browser.wait("document.querySelector('#claim-C02').innerText.includes(' done')", "it is judged")

    assert "9.00 bytes a message" in browser.text("#claim-C02")
    assert "quick" in browser.text("#claim-C02")
    browser.click("#plot-C01")
    browser.wait("document.querySelector('#claim-C01 .plot polyline') !== null", "the plot of an earlier run")
    assert browser.complaints == []


def test_a_plot_waits_for_its_first_point(browser: Chromium, watched: Watched) -> None:
    """Issue 24 point 3: an experiment that has not measured anything yet is an empty plot, not a broken one."""
    browser.open(f"{watched.page}#claims")
    browser.js(
        "import('/static/plot.js').then(({ plot }) => "
        "document.body.append(plot({ x: 'bytes', y: 'seconds', points: [] }), Object.assign("
        "document.createElement('i'), { id: 'drawn' })))"
    )
    browser.wait("document.querySelector('#drawn') !== null", "the plot is drawn")
    assert browser.complaints == []


def test_the_last_run_of_a_claim_can_be_asked_for(watched: Watched) -> None:
    """Issue 24: figure, machine, date and plot of a claim's last run, and an error for one that does not exist."""
    with urllib.request.urlopen(f"{watched.page}api/claim?number=C28", timeout=30) as answer:
        found = json.load(answer)
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(f"{watched.page}api/claim?number=C77", timeout=30)

    assert found["verdict"] == "does not hold"
    assert found["figure"] and found["machine"] and found["plot"]["points"]


def test_a_recording_cannot_run_claims(wishing: str) -> None:
    """Issue 24: experiments are run from the page of a living cluster, and only where faults are allowed."""
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://{wishing}/api/claim?number=C28", timeout=30)


def test_one_experiment_at_a_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Issue 24: a second run is refused while one is running, since they would measure each other."""
    board = Board(tmp_path_factory.mktemp("verdicts"))
    board._running = {"number": "C01", "done": False}

    with pytest.raises(Busy, match="C01 is running"):
        board.run({"number": "C02"})
    with pytest.raises(Kafka2011Error, match="not run yet"):
        board.result({"number": "C02"})
    assert [card["verdict"] for card in board.as_view()["cards"]] == [None] * len(trials())
