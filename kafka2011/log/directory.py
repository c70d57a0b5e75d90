"""The data directory: one process at a time, durable names, the clean-shutdown marker.

A rename or a deletion survives a power cut only after the directory itself was synced; a file that has the same name
after a crash may be older than it looks.
"""

from __future__ import annotations

import errno
import fcntl
import os
from enum import Enum
from pathlib import Path

from kafka2011.errors import LogDirectoryInUse
from kafka2011.failpoints import fail_point

DIRECTORY_MODE = 0o700
LOCK_FILE = ".kafka2011_lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
"""0.7's marker: when it is there, nothing needs recovery."""
_OUR_MARK = b"kafka2011\n"
"""What our marker holds; 0.7's is empty, and 0.7 looks only whether there is one."""
NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
"""The disk takes no more bytes or files. Reading and deleting go on."""


def sync_directory(path: Path) -> None:
    """Make the names in ``path`` durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def set_aside(path: Path, suffix: str) -> Path:
    """Rename a file so that no broker loads it, keeping every byte; return its new path."""
    aside = path.with_name(f"{path.name}.{suffix}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.{suffix}{number}")
    os.rename(path, aside)
    sync_directory(path.parent)
    return aside


class DirectoryLock:
    """Held while a process has the directory open; the kernel releases it when the process dies.

    Both the directory and the lock file are locked: a full disk has no room for a new file, and a directory cannot be
    locked on every file system. The number in the file only tells a second process who was first.
    """

    file_name = LOCK_FILE

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fds: list[int] = []
        try:
            self._lock(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), needed=False)
            self._lock_file()
        except BaseException:
            self.release()
            raise

    def _lock_file(self) -> None:
        path = self._directory / self.file_name
        try:
            fail_point("log.lock.before_create")
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            return
        self._lock(fd, needed=True)
        try:
            fail_point("log.lock.before_write")
            number = f"{os.getpid()}\n".encode()
            os.pwrite(fd, number, 0)
            os.ftruncate(fd, len(number))
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise

    def _lock(self, fd: int, *, needed: bool) -> None:
        self._fds.append(fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LogDirectoryInUse(
                f"{self._directory} is in use by process {self._holder()}; stop that broker or give this one another "
                "log.dir"
            ) from None
        except OSError:
            if needed:
                raise

    def _holder(self) -> str:
        try:
            return (self._directory / self.file_name).read_text("ascii", "replace")[:32].strip() or "unknown"
        except OSError:
            return "unknown"

    def complete(self) -> None:
        """Make the lock file after all, if there was no room for it at the start."""
        if len(self._fds) == 1:
            self._lock_file()

    def release(self) -> None:
        """Let another process have the directory."""
        while self._fds:
            os.close(self._fds.pop())


class Marker(Enum):
    """What a directory says of the last stop."""

    NONE = "nobody stopped cleanly"
    OURS = "this product stopped cleanly"
    FOREIGN = "another broker, as 0.7, stopped cleanly"


def take_marker(directory: Path) -> Marker:
    """Whether the last stop was clean, and whose; the marker is removed, since from now on it would lie."""
    marker = directory / CLEAN_SHUTDOWN
    try:
        text = marker.read_bytes()[: len(_OUR_MARK)]
    except FileNotFoundError:
        return Marker.NONE
    marker.unlink()
    sync_directory(directory)
    return Marker.OURS if text == _OUR_MARK else Marker.FOREIGN


def leave_marker(directory: Path) -> None:
    """Say that everything was flushed and closed."""
    fail_point("log.close.before_marker")
    fd = os.open(directory / CLEAN_SHUTDOWN, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, _OUR_MARK)
    finally:
        os.close(fd)
    sync_directory(directory)


def room_left(directory: Path) -> str:
    """How much is free on the disk of ``directory``, for people."""
    found = os.statvfs(directory)
    return f"{found.f_bavail * found.f_frsize:,} bytes and {found.f_favail:,} files free"
