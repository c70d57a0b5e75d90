"""The paper on trial: every experiment gives a verdict, and turned upside down it gives another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from classroom.claims.claim import Verdict
from classroom.claims.harness.bench import Scale
from classroom.claims.harness.room import Room
from classroom.claims.runs import Trial, run, trials

ROOT = Path(__file__).resolve().parents[4]
TRIALS = trials()


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with Room(tmp_path_factory.mktemp("claims")) as made:
        yield made


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.CLAIM.number)
def test_an_experiment_upside_down_changes_its_verdict(trial: Trial, room: Room) -> None:
    """No verdict is decoration: with its twist (sendfile off, CRC off, …) each experiment comes to another one."""
    straight = run(trial, room, scale=Scale.TINY)
    twisted = run(trial, room, scale=Scale.TINY, twisted=True)

    assert Verdict.UNKNOWN not in (straight.judgement.verdict, twisted.judgement.verdict), (straight, twisted)
    assert straight.judgement.verdict != twisted.judgement.verdict, (straight.judgement, twisted.judgement)
    assert straight.plot["points"] and straight.plot["x"] and straight.plot["y"]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.CLAIM.number)
def test_a_claim_says_where_to_look(trial: Trial) -> None:
    """Every claim names its section, its threshold, and code, tests and a walk that exist."""
    claim = trial.CLAIM

    for path in (*claim.code, *claim.tests, *([claim.walk] if claim.walk else [])):
        assert (ROOT / path).exists(), path
    assert claim.code and claim.tests
    assert all((claim.section, claim.title, claim.sentence, claim.threshold, claim.twist, claim.dissent, claim.later))
