"""Where messages begin: the one thing a byte-addressed log does not tell.

A modern client may ask for any offset, and a record's own offset lies inside its message. Serving the bytes from
there would hand out whatever a payload happens to contain as if it were a message. So the start of the entry that
*contains* the offset is looked up: from the nearest start that is known, hopping from length to length. Known are the
starts of segments, a start every 64 KiB of what was hopped over, and where recent fetches ended, which is where the
next ones begin.

See docs/modern-port.md ("a boundary lookup").
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Generator

from kafka2011.errors import InvalidMessageSize
from kafka2011.log.log import Log

SPACING = 64 << 10
STRIDE = 1 << 20
"""Bytes read in one step of a search."""
_RECENT = 4_096
_length = struct.Struct(">i").unpack_from


class EntryIndex:
    """Starts of entries of one log. Thread: reactor."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: list[int] = []
        self._recent: OrderedDict[int, None] = OrderedDict()

    def remember(self, offset: int) -> None:
        """``offset`` is where an entry begins, or will."""
        self._recent[offset] = None
        self._recent.move_to_end(offset)
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    def is_known(self, offset: int) -> bool:
        """Tell, without reading, whether an entry begins at ``offset``."""
        return offset in self._recent or offset == self._floor(offset)

    def search(self, offset: int) -> Generator[None, None, int]:
        """Find the start of the entry that contains ``offset``; yields after each megabyte.

        ``offset`` must lie in the visible part of the log.
        """
        position = self._floor(offset)
        while True:
            with self._log.read(position, STRIDE) as found:
                data = os.pread(found.fd, found.size, found.position)
            at, end = 0, len(data)
            while at + 4 <= end:
                (size,) = _length(data, at)
                if size < 1:
                    raise InvalidMessageSize(f"{self._log.topic}-{self._log.partition} has no entry at {position + at}")
                if position + at + 4 + size > offset:
                    self.remember(position + at)
                    return position + at
                at += 4 + size
            if not at:
                raise InvalidMessageSize(f"{self._log.topic}-{self._log.partition} ends inside the entry at {position}")
            position += at
            self._learn(position)
            yield

    def _floor(self, offset: int) -> int:
        """The nearest known start at or before ``offset``."""
        starts = [segment.start for segment in self._log.segments()]
        segment = starts[max(bisect_right(starts, offset) - 1, 0)]
        at = bisect_right(self._known, offset)
        return max(segment, self._known[at - 1]) if at else segment

    def _learn(self, offset: int) -> None:
        at = bisect_right(self._known, offset)
        if not at or offset - self._known[at - 1] >= SPACING:
            insort(self._known, offset)
        first = self._log.first_offset
        if self._known[0] < first:
            del self._known[: bisect_right(self._known, first)]
