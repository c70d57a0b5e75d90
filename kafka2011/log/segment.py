"""One segment file, named by the offset of its first byte, and a slice of it to be sent.

Paper: §3.1 Simple storage ("a log is implemented as a set of segment files of approximately the same size").
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from kafka2011.failpoints import fail_point
from kafka2011.log.descriptors import WRITING

SUFFIX = ".kafka"
_NAME = re.compile(r"([0-9]{1,20})\.kafka\Z")
FILE_MODE = 0o600
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_WRITE = os.O_RDWR | _FLAGS


def segment_name(start: int) -> str:
    """``00000000000000000108.kafka`` for the segment that begins at 108."""
    return f"{start:020d}{SUFFIX}"


def start_of(name: str) -> int | None:
    """The first offset a file name tells, or None if it is not a segment's. ``15.kafka`` is read too."""
    match = _NAME.match(name)
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """A segment as tools and the state page show it."""

    start: int
    size: int
    flushed_size: int
    mtime_ms: int
    path: Path


class Segment:
    """A segment file: where it starts, how many bytes were written, when last. Thread: guarded by its log.

    The file is opened when it is written to (``descriptors``), so ten thousand segments cost no descriptors.
    Invariant: the file holds exactly ``size`` bytes that count; a failed write is cut back to it.
    """

    __slots__ = ("_unsynced", "last_append_ms", "path", "size", "start")

    def __init__(self, start: int, path: Path, size: int, last_append_ms: int) -> None:
        self.start, self.path, self.size, self.last_append_ms = start, path, size, last_append_ms
        self._unsynced = False

    @classmethod
    def create(cls, directory: Path, start: int, now_ms: int) -> Segment:
        """Make the empty file; it must not exist."""
        path = directory / segment_name(start)
        segment = cls(start, path, 0, now_ms)
        fail_point("log.roll.before_create")
        WRITING.give_back(WRITING.take(segment, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, FILE_MODE))
        segment._unsynced = True
        fail_point("log.roll.after_create")
        return segment

    def make(self) -> None:
        """See to it that the file of an empty segment exists."""
        fail_point("log.roll.before_create")
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | _FLAGS, FILE_MODE))
        fail_point("log.roll.after_create")

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.start + self.size

    def append(self, data: bytes) -> None:
        """Write all of ``data`` at the end, or raise OSError and leave the file as it was.

        A short write goes on where it stopped. The caller judges the error; EIO if even cutting back failed.
        """
        # An empty one that could not be made at the start, for want of room, is made now.
        file = WRITING.take(self, _WRITE if self.size else _WRITE | os.O_CREAT)
        try:
            fail_point("log.append.before_write")
            written = os.pwrite(file.fd, data, self.size)
            if written < len(data):
                rest = memoryview(data)
                while written < len(data):
                    fail_point("log.append.short_write")
                    written += os.pwrite(file.fd, rest[written:], self.size + written)
            fail_point("log.append.after_write")
        except OSError:
            self._cut_back(file.fd)
            raise
        finally:
            # After the write: a sync that runs at the same time clears the mark before it begins.
            self._unsynced = True
            WRITING.give_back(file)
        self.size += len(data)

    def _cut_back(self, fd: int) -> None:
        try:
            fail_point("log.append.before_cut_back")
            os.ftruncate(fd, self.size)
        except OSError as error:
            raise OSError(errno.EIO, f"cutting back a failed write failed as well: {error}", self.path) from error

    def sync(self) -> None:
        """Force what was written to disk."""
        fail_point("log.flush.before_fsync")
        if self._unsynced:
            self._unsynced = False
            try:
                file = WRITING.take(self, _WRITE)
                try:
                    os.fsync(file.fd)
                finally:
                    WRITING.give_back(file)
            except OSError:
                self._unsynced = True
                raise
        fail_point("log.flush.after_fsync")

    def slice(self, position: int, size: int) -> FileSlice:
        """Open a range of the file for sending; stays readable when the file is deleted meanwhile."""
        return FileSlice(os.open(self.path, os.O_RDONLY | _FLAGS), position, size)

    def close(self) -> None:
        """Close the file, if it is open for writing."""
        WRITING.close(self)


class FileSlice:
    """A range of a segment file with a descriptor of its own. Close it when it has been sent.

    An empty slice has no descriptor (``fd`` is -1).
    """

    __slots__ = ("fd", "position", "size")

    def __init__(self, fd: int, position: int, size: int) -> None:
        self.fd, self.position, self.size = fd, position, size

    def read(self) -> bytes:
        """Copy the bytes, for transports that cannot send a file."""
        return os.pread(self.fd, self.size, self.position) if self.size else b""

    def close(self) -> None:
        """Give the descriptor back. May be called twice."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def __enter__(self) -> FileSlice:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
