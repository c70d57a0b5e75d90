"""The checkpoint: how far each partition was surely flushed, and an inventory of the files that hold it.

One small text file in the data directory (0.7 has none and skips it). Replaced whole: written aside, synced, renamed,
directory synced, so after a power cut it is either the old one or the new one.

    kafka2011 recovery points 2
    clicks-0 0 53687091 0+53687000@1300000000000 53687000+91@1300000600000
    missing clicks-1 0 53687000 clicks-1/00000000000000000000.kafka
    closed
    crc 1a2b3c4d

A partition: the first offset kept, the offset flushed up to, and each file with its start, its flushed size and the
time of its last append. ``missing``: files that were gone at a start and that nobody has accepted yet. ``closed``: the
last one of a clean stop.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafka2011.failpoints import fail_point
from kafka2011.log.directory import sync_directory
from kafka2011.wire.message import crc32

FILE = ".kafka2011_recovery_points"
_TITLE = "kafka2011 recovery points"
_FIRST, _SECOND = "1", "2"
"""The versions of the file; the first had no inventory."""
_UNKNOWN = "?"
"""Instead of the files: nobody wrote them down."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A segment file that held flushed bytes."""

    start: int
    size: int
    last_append_ms: int

    @property
    def end(self) -> int:
        """The offset after its last flushed byte."""
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """Bytes before ``flushed_offset`` were synced; bytes before ``first_offset`` were deleted on purpose.

    ``files`` hold what lies between; None if nobody wrote them down.
    """

    first_offset: int
    flushed_offset: int
    files: tuple[KeptFile, ...] | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """A file, or a partition's whole directory, that is gone with the offsets ``start`` to ``end``."""

    name: str
    """Below the data directory."""
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.name} is gone, with the offsets {self.start} to {self.end}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the file says; partitions by ``<topic>-<partition>``."""

    points: Mapping[str, RecoveryPoint] = field(default_factory=dict)
    missing: Mapping[str, tuple[Missing, ...]] = field(default_factory=dict)
    closed: bool = False
    damaged: bool = False
    """The file could not be read: nothing is known, and every log is scanned from its beginning."""


def write_checkpoint(directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the file."""
    lines = [f"{_TITLE} {_SECOND}"]
    lines += (_point_line(name, point) for name, point in sorted(checkpoint.points.items()))
    for name, gone in sorted(checkpoint.missing.items()):
        lines += (f"missing {name} {one.start} {one.end} {one.name}" for one in gone)
    if checkpoint.closed:
        lines.append("closed")
    body = "".join(f"{line}\n" for line in lines).encode()
    path, aside = directory / FILE, directory / f"{FILE}.tmp"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        fail_point("log.checkpoint.before_write")
        file.write(body + f"crc {crc32(body):08x}\n".encode())
        file.flush()
        os.fsync(fd)
    fail_point("log.checkpoint.before_rename")
    os.rename(aside, path)
    fail_point("log.checkpoint.after_rename")
    sync_directory(directory)


def read_checkpoint(directory: Path) -> Checkpoint | None:
    """The last checkpoint, None if there never was one; ``damaged`` says that it cannot be read."""
    try:
        data = (directory / FILE).read_bytes()
    except FileNotFoundError:
        return None
    try:
        return parse_checkpoint(data)
    except ValueError:
        return Checkpoint(damaged=True)


def parse_checkpoint(data: bytes) -> Checkpoint:
    """Read the text of the file; ValueError if it is not what somebody wrote."""
    body, _, tail = data.rpartition(b"crc ")
    if tail.strip() != f"{crc32(body):08x}".encode():
        raise ValueError("the checksum is wrong")
    title, *lines = body.decode().splitlines()
    if title not in (f"{_TITLE} {_FIRST}", f"{_TITLE} {_SECOND}"):
        raise ValueError(f"the title {title!r} is not known")
    listed = title.endswith(_SECOND)
    points: dict[str, RecoveryPoint] = {}
    missing: dict[str, tuple[Missing, ...]] = {}
    closed = False
    for line in lines:
        first, *words = line.split(" ")
        if first == "closed":
            closed = True
        elif first == "missing":
            where, start, end, name = words
            missing[where] = (*missing.get(where, ()), Missing(name, int(start), int(end)))
        else:
            oldest, flushed, *files = words
            kept = tuple(map(_kept_file, files)) if listed and files != [_UNKNOWN] else None
            points[first] = RecoveryPoint(int(oldest), int(flushed), kept)
    return Checkpoint(points, missing, closed)


def _point_line(name: str, point: RecoveryPoint) -> str:
    words = [name, str(point.first_offset), str(point.flushed_offset)]
    words += [_UNKNOWN] if point.files is None else map(_file_word, point.files)
    return " ".join(words)


def _file_word(file: KeptFile) -> str:
    return f"{file.start}+{file.size}@{file.last_append_ms}"


def _kept_file(text: str) -> KeptFile:
    start, _, rest = text.partition("+")
    size, _, when = rest.partition("@")
    return KeptFile(int(start), int(size), int(when))
