"""What a disk error means for a log: try again later, or never again.

Paper: §3.1 (flush), §3.3 ("if there is any I/O error on the broker"). Differs: an error ends one partition, not the
broker, and a lack of room ends nothing (docs/paper-vs-code.md).
"""

from __future__ import annotations

import errno
from pathlib import Path

from kafka2011.errors import LogError, LogFailed, LogFull
from kafka2011.events import Journal
from kafka2011.log.events import DiskFailed, DiskFull, DiskRoomAgain, HousekeepingFailed
from kafka2011.types import TopicPartition

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""Errors that pass: the append is refused whole and may be tried again."""


class Health:
    """The disk's word on one log. Thread: guarded by its log.

    ok -> full: an append found no room; the next one that goes through -> ok.
    ok, full -> failed: any other error of a write, any error of a sync. Final: the kernel may have dropped the pages,
    so a later success would prove nothing.
    """

    def __init__(self, where: TopicPartition, journal: Journal) -> None:
        self._where, self._journal = where, journal
        self.failed: str | None = None
        self.full: str | None = None

    def check(self) -> None:
        """Raise LogFailed if the disk has failed this log."""
        if self.failed:
            raise LogFailed(f"{self._where} is closed for writing since {self.failed}; restart the broker")

    def append_failed(self, error: OSError) -> LogError:
        """Judge a failed append, of which nothing was kept."""
        if error.errno not in _NO_ROOM:
            return self._fail("append", error)
        if not self.full:
            self.full = str(error)
            self._journal.emit(
                DiskFull(topic=self._where.topic, partition=self._where.partition, reason=str(error))
            )
        return LogFull(f"{self._where}: no room for the append ({error.strerror}); nothing was kept, try again later")

    def flush_failed(self, error: OSError) -> LogFailed:
        """A sync failed: the visible mark must never move again."""
        return self._fail("flush", error)

    def appended(self) -> None:
        """An append went through."""
        if self.full:
            self.full = None
            self._journal.emit(DiskRoomAgain(topic=self._where.topic, partition=self._where.partition))

    def housekeeping_failed(self, step: str, path: Path, error: OSError) -> None:
        """Tell of a failure that costs nothing but a second try."""
        self._journal.emit(HousekeepingFailed(step=step, path=str(path), reason=str(error)))

    def _fail(self, step: str, error: OSError) -> LogFailed:
        if self.failed is None:
            self.failed = f"the disk failed during {step} ({error})"
            self._journal.emit(
                DiskFailed(topic=self._where.topic, partition=self._where.partition, step=step, reason=str(error))
            )
        return LogFailed(f"{self._where}: {self.failed}; restart the broker")
