"""``kafka2011 semantics``: the notes' sentences about delivery, tried out on real processes (issue 28.6)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from classroom.semantics.cli import semantics
from classroom.semantics.verdict import Verdict, judge


def rows(*words: str) -> list[dict[str, Any]]:
    found = CliRunner().invoke(semantics, ["--json", "--records", "40", "--kills", "1", *words])
    assert found.exit_code == 0, found.output
    return [json.loads(line) for line in found.stdout.splitlines()]


def test_what_acks_and_idempotence_are_worth() -> None:
    """Notes, delivery semantics: acks=0 loses; retries without idempotence repeat; with it, each once and in order."""
    found = {(row["acks"], row["idempotence"], row["in_flight"]): row for row in rows("--only", "producer")}

    assert len(found) == 8
    for in_flight in (1, 5):
        assert found["0", False, in_flight]["lost"] > 0
        for acks in ("1", "all"):
            plain = found[acks, False, in_flight]
            assert plain["lost"] == 0 and plain["duplicated"] > 0, plain
        assert found["all", True, in_flight]["exact"], found["all", True, in_flight]


def test_three_orders_of_consume_transform_produce() -> None:
    """Notes, delivery semantics: committing first loses, committing last repeats, a transaction does neither."""
    found = {(row["loop"], row["read"]): row for row in rows("--only", "loop")}

    once = found["at most once", "committed"]
    assert once["lost"] > 0 and once["duplicated"] == 0
    least = found["at least once", "committed"]
    assert least["lost"] == 0 and least["duplicated"] > 0
    assert found["exactly once", "committed"]["exact"]
    assert found["exactly once", "uncommitted"]["duplicated"] > 0, "the kill struck inside a transaction"


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([0, 1, 2], Verdict(3, 0, 0, 0)),
        ([0, 2], Verdict(3, 1, 0, 0)),
        ([0, 1, 1, 2, 0], Verdict(3, 0, 2, 0)),
        ([1, 2, 0], Verdict(3, 0, 0, 1)),
        ([], Verdict(3, 3, 0, 0)),
    ],
    ids=str,
)
def test_the_judge(found: list[int], verdict: Verdict) -> None:
    """Control: what is missing, repeated or out of place is counted."""
    assert judge(3, found) == verdict
