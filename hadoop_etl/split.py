"""Where to cut a partition's range into splits, so that several tasks can read it.

Segment starts are message boundaries for sure. Inside a large segment we land somewhere and look for a place from which
two messages in a row are good. That can be wrong only where payloads contain whole message sets; then the splits do
not meet, the load notices (``tiling``) and reads again with the sure cuts only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hadoop_etl.damage import MAX_ENTRY, good_starts
from hadoop_etl.entries import read_entries

PROBE_SIZES = (64 << 10, 1 << 20, 8 << 20)

Fetch = Callable[[int, int], bytes]
"""Bytes of the partition from an offset, at most so many."""


@dataclass(frozen=True, slots=True)
class Split:
    """A piece of a range. ``sure_end`` is the next boundary that is certain; it equals ``end`` if the end is."""

    start: int
    end: int
    sure_end: int


def make_splits(start: int, end: int, segment_starts: Sequence[int], size: int, fetch: Fetch | None) -> list[Split]:
    """Cut [start, end) into splits of about ``size`` bytes; without ``fetch`` only where it is sure."""
    sure = [start]
    for boundary in sorted(segment_starts):
        if start < boundary < end and boundary - sure[-1] >= size:
            sure.append(boundary)
    sure.append(end)
    splits = []
    for first, last in pairwise(sure):
        inside = _inside(first, last, size, fetch) if fetch is not None and last - first >= 2 * size else []
        edges = [first, *inside, last]
        splits += [Split(a, b, last) for a, b in pairwise(edges)]
    return [split for split in splits if split.end > split.start]


def _inside(first: int, last: int, size: int, fetch: Fetch) -> list[int]:
    """Cuts between two sure boundaries, in order."""
    count = (last - first) // size
    found: list[int] = []
    for i in range(1, count):
        place = boundary_after(first + (last - first) * i // count, last, fetch)
        if place is not None and place > (found[-1] if found else first) and place < last:
            found.append(place)
    return found


def boundary_after(offset: int, end: int, fetch: Fetch) -> int | None:
    """The first message boundary at or after ``offset``, as far as can be told from the bytes."""
    for size in PROBE_SIZES:
        data = fetch(offset, min(size, end - offset))
        place = next(good_starts(data), None)
        if place is not None:
            return offset + place
        if offset + size >= end:
            break
    return None


def walk_to(fetch: Fetch, start: int, budget: int) -> int:
    """The message boundary at or below ``start + budget``, walked from ``start``, so that it is sure; one message at
    least, or a small budget would never get anywhere."""
    if not budget:
        return start
    position, size = start, 4 << 20
    while True:
        data = fetch(position, size)
        entries = read_entries(data, position, at_end=False)
        if not entries.size and size < MAX_ENTRY and len(data) == size:
            size *= 4  # one message larger than that
            continue
        if not entries.size:
            return position
        if position + entries.size > start + budget:
            break
        position += entries.size
    ends = [int(end) for rows in entries.rows for end in rows.next_offset] + [dead.next_offset for dead in entries.dead]
    inside = [end for end in ends if end <= start + budget]
    return max(inside, default=position if position > start else min(ends))
