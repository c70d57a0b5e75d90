"""Find what a reader asks for: a part of one segment file, and the aborted transactions that reach into it.

The index leads near the first batch; from there the bytes are handed on as they lie in the file.
"""

from __future__ import annotations

import os

from since2011.log.indexes import Aborted
from since2011.log.open_files import Handle
from since2011.log.segment import Segment


class Slice:
    """A part of a segment file, of whole batches from the first on; the last may be cut.

    It can be sent (``broker.sendfile.FileRange``): the file stays readable until ``close``, whatever happens to the
    segment.
    """

    __slots__ = ("_handle", "first_offset", "goes_on", "position", "segment", "size")

    def __init__(self, segment: Segment, position: int, size: int, first_offset: int, goes_on: bool) -> None:
        self.segment, self.position, self.size, self.first_offset = segment, position, size, first_offset
        self.goes_on = goes_on
        """Whether a later segment has something for this reader, too: no waiting makes this slice longer."""
        self._handle: Handle | None = segment.open()

    @property
    def fd(self) -> int:
        """The descriptor to send from; -1 once it is closed."""
        return -1 if self._handle is None else self._handle.fd

    def close(self) -> None:
        """Let go of the file."""
        self._handle = None

    def read(self) -> bytes:
        """The bytes, for who cannot send them from the file."""
        return os.pread(self.fd, self.size, self.position)


def locate(
    segments: list[Segment], offset: int, max_bytes: int, upto: int, log_end: int, at_least_one: bool
) -> Slice | None:
    """See ``ModernLog.locate``; the first of these segments is where ``offset`` belongs."""
    for number, segment in enumerate(segments, 1):
        if segment.base_offset >= upto:
            return None
        first = segment.find(offset)
        if first is None:
            continue  # the cleaner left a gap at the segment's end
        if first.header.base_offset >= upto:
            return None
        end = segment.size if upto >= log_end else position_of(segment, upto)
        size = min(max_bytes, end - first.position)
        if size < first.header.size:
            if not at_least_one:
                return None
            size = first.header.size
        goes_on = number < len(segments) and segments[number].base_offset < upto
        return Slice(segment, first.position, size, first.header.base_offset, goes_on)
    return None


def position_of(segment: Segment, offset: int) -> int:
    """Where the batch with ``offset`` begins; the end of the segment, if it is beyond."""
    found = segment.find(offset)
    return segment.size if found is None else found.position


def aborted_in(segments: list[Segment], part: Slice, log_end: int) -> list[Aborted]:
    """The aborted transactions that reach into a slice of the first of these segments, the last of the log included.

    A marker may lie in a later segment than the data it ends.
    """
    upper = part.segment.index.upper_bound(part.position + part.size)
    if upper is None:
        upper = segments[1].base_offset if len(segments) > 1 else log_end
    found = []
    for segment in segments:
        for entry in segment.txn_index.entries:
            if entry.last_offset >= part.first_offset and entry.first_offset < upper:
                found.append(entry)
            if entry.last_stable_offset >= upper:
                return found
    return found
