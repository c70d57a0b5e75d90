"""Find the message a worker dies of.

What kills a process cannot be caught: a signal, or no memory left. So the split is read again in halves, each by a
worker of its own. Halves that are well are kept as they are; of those that kill, halves again, down to one message.
That one is run alone once more: if the worker dies again, it is a dead row, with its bytes and this reason.

    split -> halves, at message boundaries -> one entry -> (a wrapper) halves of its messages -> one message

Checks before every parser should make this unnecessary (``decode.bounds``); it is here for what nobody foresaw.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from hadoop_etl.damage import MAX_ENTRY
from hadoop_etl.split import Fetch, Split
from hadoop_etl.work import LostSplit, Result, SplitResult, Work
from kafka2011.wire.message import CODEC_MASK

MOST_GUILTY = 8
"""Messages of one split that may be found guilty; if there are more, it is not the messages."""

_READ = 1 << 20
_length = struct.Struct(">i").unpack_from

Run = Callable[[Sequence[Work]], list[Result]]


class Halving:
    """The search through one split. Thread: one."""

    def __init__(self, run: Run, fetch: Fetch) -> None:
        self._run, self._fetch = run, fetch
        self._pieces = self._guilty = 0

    def rescue(self, lost: LostSplit) -> Result:
        """Load what a worker died of: all of it but the guilty messages, or say why that cannot be."""
        done: list[SplitResult] = []
        waiting = self._halves(lost.work) or [lost.work]
        waiting.reverse()
        while waiting:
            work = waiting.pop()
            found = self._try(work)
            if isinstance(found, LostSplit) and found.died:
                halves = self._halves(work)
                if halves:
                    waiting += reversed(halves)
                    continue
                found = self._judge(work)
            if isinstance(found, LostSplit):
                return replace(found, work=lost.work)
            done.append(found)
            if found.stopped:
                break
        return _together(lost.work, done)

    def _try(self, work: Work) -> Result:
        self._pieces += 1
        (found,) = self._run([replace(work, piece=f".h{self._pieces}")])
        return found

    def _judge(self, work: Work) -> Result:
        """One message, or one wrapper that cannot even be opened: once more alone, then as a dead row."""
        found = self._try(work)
        if not (isinstance(found, LostSplit) and found.died):
            return found
        self._guilty += 1
        if self._guilty > MOST_GUILTY:
            reason = f"workers died of more than {MOST_GUILTY} messages of this split; is there enough memory?"
            return replace(found, reason=reason, died=False)
        start = work.split.start
        if work.only is None:
            return self._try(replace(work, sealed=(start,), guilty=((start, 0),)))
        return self._try(replace(work, guilty=((start, work.only[0]),)))

    def _halves(self, work: Work) -> list[Work]:
        """The work in two, or nothing if it is one message."""
        if work.only is not None:
            return _indices(work, *work.only)
        entries = entry_offsets(self._fetch, work.split.start, work.split.end)
        if len(entries) > 1:
            middle = entries[len(entries) // 2]
            first = Split(work.split.start, middle, middle)
            rest = Split(middle, work.split.end, work.split.sure_end)
            return [replace(work, split=first), replace(work, split=rest)]
        if not self._is_wrapper(work.split.start):
            return []
        # Nothing of the wrapper is decoded here: whoever dies now died of opening it.
        opened = self._try(replace(work, only=(0, 0)))
        if isinstance(opened, LostSplit):
            return []
        return _indices(work, 0, opened.seen) or [replace(work, only=(0, 1))]

    def _is_wrapper(self, offset: int) -> bool:
        head = self._fetch(offset, 16)
        return len(head) > 5 and head[4] == 1 and head[5] & CODEC_MASK != 0


def _indices(work: Work, first: int, last: int) -> list[Work]:
    """Halves of the messages inside a wrapper."""
    if last - first <= 1:
        return []
    middle = (first + last) // 2
    return [replace(work, only=(first, middle)), replace(work, only=(middle, last))]


def entry_offsets(fetch: Fetch, start: int, end: int) -> list[int]:
    """Where entries begin, by their lengths alone; behind damage, everything is one."""
    found: list[int] = []
    position = start
    data, base = b"", start
    while position < end:
        if position + 4 > base + len(data):
            data, base = fetch(position, _READ), position
            if len(data) < 4:
                break
        found.append(position)
        (size,) = _length(data, position - base)
        if not 5 <= size <= MAX_ENTRY:
            break
        position += 4 + size
    return found


def _together(work: Work, pieces: Sequence[SplitResult]) -> SplitResult:
    """The pieces as if one task had done them."""
    whole = SplitResult(work, pieces[-1].end, stopped=pieces[-1].stopped)
    for piece in pieces:
        whole.files += piece.files
        whole.dead_files += piece.dead_files
        whole.rows += piece.rows
        whole.dead += piece.dead
        whole.late += piece.late
        whole.extra += piece.extra
        whole.reasons += Counter(piece.reasons)
        whole.hours.update(piece.hours)
        whole.seconds += piece.seconds
    return whole
