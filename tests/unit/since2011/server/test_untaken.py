"""Answers that are not read are bounded over all clients. Issue 19 B2."""

from __future__ import annotations

from since2011.server.untaken import Untaken


class Reader:
    """A connection."""

    def __init__(self) -> None:
        self.dropped: list[str] = []

    def drop(self, kind: str, reason: str) -> None:
        self.dropped.append(kind)


def test_who_has_not_read_for_longest_gives_way() -> None:
    """B2: over the limit the oldest unread answer is given up; who reads in time is never closed."""
    untaken = Untaken(100)
    slow, quick, last = Reader(), Reader(), Reader()
    untaken.add(slow, 60)
    for _ in range(10):
        untaken.add(quick, 40)
        untaken.taken(quick)
    assert (untaken.total, slow.dropped, quick.dropped) == (60, [], [])
    untaken.add(quick, 30)
    untaken.add(last, 30)

    assert (slow.dropped, quick.dropped, last.dropped) == (["untaken"], [], [])
    assert untaken.total == 60
    untaken.taken(slow)
    assert untaken.total == 60, "it was taken out already"


def test_a_single_answer_larger_than_the_limit_closes_its_own_reader_only() -> None:
    """B2: no loop without end, nobody else is closed for it who came after."""
    untaken = Untaken(100)
    greedy, other = Reader(), Reader()
    untaken.add(greedy, 101)
    untaken.add(other, 10)

    assert (greedy.dropped, other.dropped, untaken.total) == (["untaken"], [], 10)
