"""The data directory: one process at a time, durable names, the clean-shutdown marker.

A rename or a deletion survives a power cut only after the directory itself was synced; a file that has the same name
after a crash may be older than it looks.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from kafka2011.errors import LogDirectoryInUse
from kafka2011.failpoints import fail_point

DIRECTORY_MODE = 0o700
LOCK_FILE = ".kafka2011_lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
"""0.7's marker: when it is there, nothing needs recovery."""


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
    """Held while a process has the directory open; the kernel releases it when the process dies."""

    def __init__(self, directory: Path) -> None:
        path = directory / LOCK_FILE
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise LogDirectoryInUse(
                f"{directory} is in use by process {holder}; stop that broker or give this one another log.dir"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let another process have the directory."""
        os.close(self._fd)


def take_marker(directory: Path) -> bool:
    """Whether the last stop was clean; the marker is removed, since from now on it would lie."""
    marker = directory / CLEAN_SHUTDOWN
    if not marker.exists():
        return False
    marker.unlink()
    sync_directory(directory)
    return True


def leave_marker(directory: Path) -> None:
    """Say that everything was flushed and closed."""
    fail_point("log.close.before_marker")
    os.close(os.open(directory / CLEAN_SHUTDOWN, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    sync_directory(directory)
