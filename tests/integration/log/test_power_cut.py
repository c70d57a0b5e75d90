"""A power cut, honestly: the file system is shut down under the writer without flushing its journal.

kill -9 leaves the page cache to the kernel, so only this tells whether "flushed" means on disk (docs/reliability.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.errors import LogFailed
from kafka2011.log import LogStore
from kafka2011.wire import encode_set
from tests.integration.log.conftest import check_directory
from tests.integration.log.disk import Disk, mounted
from tests.integration.log.writer import SETTINGS, SIZE, payload


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path) as found:
        yield found


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
