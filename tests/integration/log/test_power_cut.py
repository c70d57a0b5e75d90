"""A power cut, honestly: the file system is shut down under the writer without flushing its journal.

kill -9 leaves the page cache to the kernel, so only this tells whether "flushed" means on disk (docs/reliability.md).
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.errors import LogFailed
from kafka2011.log import LogStore
from kafka2011.wire import encode_set
from tests.integration.log.conftest import check_directory
from tests.integration.log.writer import SETTINGS, SIZE, payload

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


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("a power cut needs root: it mounts an ext4 image")
    try:
        disk = Disk(tmp_path)
        disk.mount()
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a power cut needs mkfs.ext4 and loop mounts: {error}")
    yield disk
    # Lazily: a test that failed may still hold files open, and must not leave a mount behind.
    disk.umount("--lazy")


@pytest.mark.parametrize("unflushed", [0, 1, 7])
def test_power_cut(disk: Disk, unflushed: int) -> None:
    """Everything flushed is there after the cut, at its offset; what was not may be gone, and nothing half (§3.1)."""
    store = LogStore(disk.mountpoint / "data", SETTINGS)
    store.open()
    log = store.get_or_create("t", 0)
    number = 0
    for _ in range(12):
        log.append(encode_set([payload(number + i) for i in range(5)]), 5)
        number += 5
        log.flush()
    flushed = log.flushed_offset
    for _ in range(unflushed):
        log.append(encode_set([payload(number + i) for i in range(5)]), 5)
        number += 5
    disk.cut_power()
    if unflushed:
        with pytest.raises(LogFailed):
            log.flush()
    assert log.flushed_offset == flushed
    store.close()
    disk.umount()
    disk.mount()
    end = check_directory(disk.mountpoint / "data", flushed)
    assert flushed <= end <= number * SIZE
