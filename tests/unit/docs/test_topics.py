"""Every topic of today's Kafka has a home, or is said to have none. The curriculum's second list."""

from __future__ import annotations

from docs.topics import N_TOPICS, problems, topics


def test_every_topic_leads_somewhere() -> None:
    """Curriculum: 75 topics; what is shown or told has code, a test, and a page or something to try that exist."""
    rows = topics()

    assert [row.no for row in rows] == [str(number) for number in range(1, N_TOPICS + 1)]
    assert problems(rows) == []


def test_a_missing_home_is_noticed() -> None:
    """The control: a row without a test, or with a name, a claim or a walk that is gone, is a problem."""
    first = topics()[0]

    assert problems([first._replace(test="")]) == [f"topic {first.no}: test missing"]
    assert problems([first._replace(code="kafka2011/log/log.py:NoSuchThing")]) != []
    assert problems([first._replace(experiment="C99; walks/99-nothing.md")]) != []
    assert problems([first._replace(page="nothing.md")]) != []
