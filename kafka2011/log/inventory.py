"""Compare the files of a partition with those that were written down, and tell what is gone.

Retention deletes the oldest files and nothing else, and writes that down first; so does 0.7, which writes nothing down.
A file that was written down and is not there was taken by somebody else, unless retention may have done it: it was
among the oldest, and old enough or too many by the settings, or another broker has had the directory since. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile

from kafka2011.log import retention
from kafka2011.log.checkpoint import KeptFile
from kafka2011.log.settings import LogSettings

MOST_APPENDED = 1 << 31
"""No append is larger: the size of a request has 31 bits."""


def gone(
    files: Sequence[KeptFile],
    present: Collection[int],
    size_present: int,
    settings: LogSettings,
    topic: str,
    *,
    now_ms: int,
    foreign: bool,
) -> list[KeptFile]:
    """The files that nobody had a right to delete.

    ``present`` are the starts of the files found, which hold ``size_present`` bytes; ``foreign``: another broker may
    have had the directory since ``files`` were written down.
    """
    oldest = list(takewhile(lambda file: file.start not in present, files))
    if not present:
        # Retention always leaves a file.
        excused = 0
    elif foreign:
        excused = len(oldest)
    else:
        expired = retention.expired(oldest, now_ms, settings.retention_ms_of(topic))
        sizes = [file.size for file in oldest[expired:]]
        excused = expired + retention.oversize([*sizes, size_present], settings.retention_size_of(topic))
    return [file for file in files[min(excused, len(oldest)) :] if file.start not in present]


def beyond(last: int, flushed: int, file_size: int, *, exact: bool) -> int:
    """An offset that was never given to a message, when the file that began at ``last`` is gone.

    If the last stop was clean that is the end that was written down. If not, more may have been appended since: a file
    is followed by the next one when it is larger than ``file_size``, so it ended at most one append after that.
    """
    return flushed if exact else max(flushed, last + file_size + MOST_APPENDED)
