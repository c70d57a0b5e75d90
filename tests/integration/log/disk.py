"""A disk of the test's own, whose power can be cut: the file system is shut down without flushing its journal."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FS_IOC_SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125
NO_LOG_FLUSH = struct.pack("I", 2)


class Disk:
    """An ext4 image on a loop device."""

    def __init__(self, directory: Path) -> None:
        self.image, self.mountpoint = directory / "image", directory / "disk"
        self.mountpoint.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(16 * 1024 * 1024)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self.image)], check=True, capture_output=True)

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self.image), str(self.mountpoint)], check=True, capture_output=True)

    def umount(self, *how: str) -> None:
        subprocess.run(["umount", *how, str(self.mountpoint)], check=True, capture_output=True)

    def cut_power(self) -> None:
        fd = os.open(self.mountpoint, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, NO_LOG_FLUSH)
        finally:
            os.close(fd)


@contextmanager
def mounted(directory: Path) -> Iterator[Disk]:
    """A disk at ``directory``; skips the test where there can be none."""
    if os.geteuid() != 0:
        pytest.skip("a power cut needs root: it mounts an ext4 image")
    try:
        disk = Disk(directory)
        disk.mount()
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a power cut needs mkfs.ext4 and loop mounts: {error}")
    try:
        yield disk
    finally:
        # Lazily: a test that failed may still hold files open, and must not leave a mount behind.
        disk.umount("--lazy")
