"""The sorted list of segments (§3.1, Figure 2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka2011.log.segment import Segment, segment_name, start_of
from kafka2011.log.segment_list import SegmentList


def segments(*starts: int) -> list[Segment]:
    return [Segment(start, Path(segment_name(start)), 10, 0) for start in starts]


def test_older_views_are_unaffected() -> None:
    """A roll or a deletion makes a new list; a reader keeps the one it took (docs/paper-vs-code.md SegmentList)."""
    one = SegmentList(segments(0, 10))
    two = one.appended(segments(20)[0])
    three = two.without_oldest(2)
    assert [s.start for s in one] == [0, 10]
    assert [s.start for s in two] == [0, 10, 20]
    assert [s.start for s in three] == [20]
    assert (two.first.start, two.active.start, len(two)) == (0, 20, 3)


def test_one_segment_always_stays() -> None:
    """Dropping more than there are leaves the last (docs/log.md)."""
    assert [s.start for s in SegmentList(segments(0, 10)).without_oldest(9)] == [10]


@pytest.mark.parametrize(("offset", "start"), [(0, 0), (9, 0), (10, 10), (19, 10), (20, 20), (25, 20)])
def test_lookup_at_the_edges(offset: int, start: int) -> None:
    """The segment that holds an offset is found by bisection (§3.1)."""
    found = SegmentList(segments(0, 10, 20))
    assert found.holding(offset).start == start
    assert next(iter(found.from_offset(offset))).start == start


def test_names() -> None:
    """A segment is named by its first offset in 20 digits; shorter names are read too (docs/log.md)."""
    assert segment_name(108) == "00000000000000000108.kafka"
    assert start_of("15.kafka") == 15
    assert start_of("x.kafka") is start_of("1.kafka.corrupt") is start_of("1.log") is None
