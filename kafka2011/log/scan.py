"""Walk the bytes of a segment: how far is it intact, and does anything intact come after the damage?

Paper: §3.3 ("a CRC for each message in the log ... the recovery process removes messages with inconsistent CRCs").
Work is proportional to the bytes looked at.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator

from kafka2011.errors import InvalidMessage, WireError
from kafka2011.wire import walk
from kafka2011.wire.entry import Entry, read_entry
from kafka2011.wire.message import LENGTH, SMALLEST_ENTRY

_CHUNK = 1024 * 1024
_MAYBE_ENTRY = re.compile(rb"(?=[\x00-\x7f]...[\x00\x01])(?!\x00\x00\x00[\x00-\x04])", re.DOTALL)
"""A length that is positive and not below the smallest, then a magic that exists."""
_CHECK_BUDGET = 32
"""CRC bytes spent looking for entries after damage, as a multiple of the bytes there."""


def intact_until(fd: int, pos: int, end: int) -> int:
    """The position after the last intact entry of an unbroken chain from ``pos`` on, in a file of ``end`` bytes."""
    while pos < end:
        chunk = os.pread(fd, min(_CHUNK, end - pos), pos)
        step = walk.check(chunk, 0, True)[0]
        if not step:
            size = _claimed_size(chunk)
            if size <= len(chunk) or size > end - pos or walk.check(os.pread(fd, size, pos), 0, True)[0] < size:
                return pos
            step = size
        pos += step
    return pos


def _claimed_size(chunk: bytes) -> int:
    return 4 + int(LENGTH.unpack_from(chunk)[0]) if len(chunk) >= 4 else 0


def entry_at(data: bytes | mmap.mmap, pos: int, end: int) -> Entry | None:
    """The intact entry at ``pos``, or None."""
    if end - pos < SMALLEST_ENTRY or data[pos + 4] > 1:
        return None
    (n,) = LENGTH.unpack_from(data, pos)
    if n < 5 or n > end - pos - 4:
        return None
    try:
        return read_entry(data[pos : pos + 4 + n], 0)
    except WireError:
        return None


def intact_after(data: bytes | mmap.mmap, pos: int, end: int) -> Iterator[int]:
    """Every position after ``pos`` where an intact entry stands, also inside the payload of another.

    Raises InvalidMessage when the bytes are such that telling would take too long: then nothing can be excluded.
    """
    budget = _CHECK_BUDGET * (end - pos) + _CHUNK
    for match in _MAYBE_ENTRY.finditer(data, pos + 1, end):
        start = match.start()
        (n,) = LENGTH.unpack_from(data, start)
        if n > end - start - 4:
            continue
        budget -= n
        if budget < 0:
            raise InvalidMessage("the damaged bytes hold too many possible messages to look at each")
        if entry_at(data, start, end) is not None:
            yield start


def something_follows(data: bytes | mmap.mmap, pos: int, end: int) -> bool:
    """Whether intact entries follow the damage at ``pos``: then it is not the torn end of the last write.

    An entry that says it is longer than the file is the cut-off last write itself; messages inside its payload do not
    count, unless they reach exactly to the end of the file, which a cut-off payload does not.
    """
    claims = LENGTH.unpack_from(data, pos)[0] if end - pos >= 4 else -1
    cut_off = claims >= end - pos - 4 and end - pos > 4 and data[pos + 4] <= 1
    reach = pos
    try:
        for start in intact_after(data, pos, end):
            if not cut_off:
                return True
            if start >= reach:
                reach = start
                while (entry := entry_at(data, reach, end)) is not None:
                    reach += entry.size
            if reach == end:
                return True
    except InvalidMessage:
        return True
    return False
