"""Lab 3, a model solution: which messages readers may see."""

from __future__ import annotations

from typing import Any

NAME = "log"


class DiskFailed(Exception):
    """A flush failed: this log takes no more messages until it is opened again."""


class FlushedLog:
    """A log in one file, whose readers see only what is flushed."""

    def __init__(self, disk: Any, tools: Any, flush_messages: int, flush_ms: int) -> None:
        self._disk, self._flush_messages, self._flush_ms = disk, flush_messages, flush_ms
        self._failed = False
        self._n_waiting = 0
        self._waiting_since = 0
        if NAME not in disk.names():
            disk.create(NAME)
        data = disk.read(NAME)
        self._end = tools.intact(data)
        if self._end < len(data):
            disk.truncate(NAME, self._end)
        disk.fsync(NAME)
        disk.fsync_directory()
        self._flushed = self._end

    def append(self, message: bytes, now_ms: int) -> int:
        """Write one message; flush if enough are waiting. Its offset."""
        self._check()
        offset = self._end
        self._disk.append(NAME, message)
        self._end += len(message)
        if not self._n_waiting:
            self._waiting_since = now_ms
        self._n_waiting += 1
        if self._n_waiting >= self._flush_messages:
            self._flush()
        return offset

    def tick(self, now_ms: int) -> None:
        """Flush if a message has waited long enough."""
        self._check()
        if self._n_waiting and now_ms - self._waiting_since >= self._flush_ms:
            self._flush()

    def visible(self) -> int:
        """The offset up to which readers may read."""
        return self._flushed

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Nothing that is not flushed."""
        return self._disk.read(NAME)[offset : min(offset + max_bytes, self._flushed)]

    def _flush(self) -> None:
        try:
            self._disk.fsync(NAME)
        except OSError as error:
            self._failed = True
            raise DiskFailed(str(error)) from error
        self._flushed = self._end
        self._n_waiting = 0

    def _check(self) -> None:
        if self._failed:
            raise DiskFailed("an earlier flush failed")
