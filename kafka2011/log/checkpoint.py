"""The recovery points: for each partition the first offset kept and the offset up to which it was surely flushed.

One small text file in the data directory (0.7 has none and skips it). Replaced whole: written aside, synced, renamed,
directory synced, so after a power cut it is either the old one or the new one.

    kafka2011 recovery points 1
    clicks-0 0 53687091
    crc 1a2b3c4d
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka2011.failpoints import fail_point
from kafka2011.log.directory import sync_directory
from kafka2011.wire.message import crc32

FILE = ".kafka2011_recovery_points"
_TITLE = "kafka2011 recovery points 1"


@dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """Bytes before ``flushed_offset`` were synced; bytes before ``first_offset`` were deleted on purpose."""

    first_offset: int
    flushed_offset: int


def write_checkpoint(directory: Path, points: Mapping[str, RecoveryPoint]) -> None:
    """Replace the file."""
    lines = [_TITLE, *(f"{name} {p.first_offset} {p.flushed_offset}" for name, p in sorted(points.items()))]
    body = "".join(f"{line}\n" for line in lines).encode()
    path, aside = directory / FILE, directory / f"{FILE}.tmp"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(body + f"crc {crc32(body):08x}\n".encode())
        file.flush()
        os.fsync(fd)
    fail_point("log.checkpoint.before_rename")
    os.rename(aside, path)
    fail_point("log.checkpoint.after_rename")
    sync_directory(directory)


def read_checkpoint(directory: Path) -> dict[str, RecoveryPoint] | None:
    """The recovery points by ``<topic>-<partition>``: none of a damaged file, None if there never was one."""
    try:
        data = (directory / FILE).read_bytes()
    except FileNotFoundError:
        return None
    body, _, tail = data.rpartition(b"crc ")
    if tail.strip() != f"{crc32(body):08x}".encode() or not body.startswith(_TITLE.encode()):
        return {}
    points = {}
    for line in body.decode().splitlines()[1:]:
        name, first, flushed = line.split(" ")
        points[name] = RecoveryPoint(int(first), int(flushed))
    return points
