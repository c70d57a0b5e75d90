"""The in-memory list of segments, sorted by first offset.

Paper: §3.1 ("the broker keeps in memory a sorted list of offsets, including the offset of the first message in every
segment file. The broker locates the segment file ... by searching the offset list"), Figure 2.

Copy-on-write: a roll or a deletion makes a new list, so a reader keeps the one it took and needs no lock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from kafka2011.log.segment import Segment


class SegmentList:
    """An immutable, non-empty run of segments, gap-free unless files were lost.

    From ``whole_from`` on there is no gap up to the end.
    """

    __slots__ = ("_segments", "_starts", "whole_from")

    def __init__(self, segments: Sequence[Segment], whole_from: int | None = None) -> None:
        self._segments = tuple(segments)
        self._starts = [segment.start for segment in segments]
        self.whole_from = segments[0].start if whole_from is None else max(whole_from, segments[0].start)

    @property
    def first(self) -> Segment:
        """The oldest."""
        return self._segments[0]

    @property
    def active(self) -> Segment:
        """The last: the one that is appended to."""
        return self._segments[-1]

    def appended(self, segment: Segment) -> SegmentList:
        """This list with a new active segment."""
        return SegmentList((*self._segments, segment), self.whole_from)

    def without_oldest(self, n: int) -> SegmentList:
        """This list without its ``n`` oldest segments; one always stays."""
        return SegmentList(self._segments[min(n, len(self._segments) - 1) :], self.whole_from)

    def holding(self, offset: int) -> Segment:
        """The segment in which ``offset`` lies, or before the gap in which it lies; the caller checked the range."""
        return self._segments[bisect_right(self._starts, offset) - 1]

    def from_offset(self, offset: int) -> tuple[Segment, ...]:
        """The segments that hold ``offset`` or anything after it."""
        return self._segments[max(0, bisect_right(self._starts, offset) - 1) :]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)
