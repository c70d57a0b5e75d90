"""Files of modern logs that are open: as many as the process can spare, those used last.

A thousand partitions have some four thousand files. One that was not used for a while is closed and opened again when
its turn comes. A descriptor is closed when nobody refers to it any more: whoever sends a part of a file keeps the
``Handle``, so a file that is closed here, renamed or deleted meanwhile is still sent to its end.
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path

from kafka2011.log.descriptors import spare_files

_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
FILE_MODE = 0o600


class Handle:
    """An open descriptor; it is closed with the last reference to this object."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self.fd)


class OpenFiles:
    """At most ``most`` files open, beside those somebody holds a handle of. Thread: any."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        # The first was opened, or found in use, the longest time ago.
        self._files: dict[LogFile, None] = {}

    def __len__(self) -> int:
        return len(self._files)

    def admit(self, file: LogFile, flags: int) -> Handle:
        """Open a file; close others if there are too many."""
        with self._lock:
            if file.handle is None:
                file.handle = Handle(_open(file.path, flags))
                self._files[file] = None
                self._give_back(file)
            return file.handle

    def forget(self, file: LogFile) -> None:
        """Close a file."""
        with self._lock:
            self._files.pop(file, None)
            file.handle = None

    def _give_back(self, newest: LogFile) -> None:
        """Close the file that was not used since it was last looked at; one in use gets a second chance."""
        for file in list(self._files) if len(self._files) > self.most else ():
            if len(self._files) <= self.most:
                return
            if file is newest:
                continue
            del self._files[file]
            if file.in_use:
                file.in_use = False
                self._files[file] = None
            else:
                file.handle = None
        for file in list(self._files)[: max(0, len(self._files) - self.most)]:
            if file is not newest:
                del self._files[file]
                file.handle = None


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, os.O_RDWR | _FLAGS | flags, FILE_MODE)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EROFS):
            raise
        return os.open(path, os.O_RDONLY | _FLAGS)  # somebody who only looks, as `log dump` does


OPEN_FILES = OpenFiles(spare_files())
"""Of this process, since that is whose files are counted."""


class LogFile:
    """One file that is opened when it is needed. Thread: any."""

    __slots__ = ("_flags", "_table", "handle", "in_use", "path")

    def __init__(self, path: Path, flags: int = 0, table: OpenFiles = OPEN_FILES) -> None:
        self.path, self._flags, self._table = path, flags, table
        self.handle: Handle | None = None
        self.in_use = False

    def open(self) -> Handle:
        """The descriptor; keep the handle as long as you use its number. Raises FileNotFoundError."""
        self.in_use = True
        handle = self.handle
        return handle if handle is not None else self._table.admit(self, self._flags)

    def create(self) -> Handle:
        """The same; the file is made if it is not there."""
        self.in_use = True
        handle = self.handle
        return handle if handle is not None else self._table.admit(self, self._flags | os.O_CREAT)

    def close(self) -> None:
        """Let go of it."""
        self._table.forget(self)
