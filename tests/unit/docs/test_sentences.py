"""Every sentence of §3 has a home. Issue 24, point 5."""

from __future__ import annotations

from docs.sentences import N_SENTENCES, problems, sentences


def test_no_sentence_without_a_home() -> None:
    """Issue 24: each sentence of §3 that claims something leads to code, test and walk that exist (122 of 122)."""
    rows = sentences()

    assert [row.no for row in rows] == [str(number) for number in range(1, N_SENTENCES + 1)]
    assert sum(row.claims_something for row in rows) == 122
    assert problems(rows) == []


def test_a_missing_home_is_noticed() -> None:
    """The control: a row without a test, or with a name that is gone, is a problem."""
    first = next(row for row in sentences() if row.claims_something)

    assert problems([first._replace(test="")]) == [f"sentence {first.no}: test missing"]
    assert problems([first._replace(code="kafka2011/log/log.py:NoSuchThing")]) != []
    assert problems([first._replace(walk="docs/walks/99-nothing.md")]) != []
    assert problems([first._replace(claim="C99")]) != []
