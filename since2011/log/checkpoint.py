"""Checkpoint files: a version, a number of lines, the lines.

    0
    2
    clicks 0 42
    clicks 1 17

Four of them lie in a log directory (recovery points, high watermarks, log starts, what the cleaner has done), and one
of another shape in each partition (leader epochs). A real broker takes a malformed one for a failed disk, so they are
written whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from kafka2011.errors import LogCorrupt
from since2011.log.files import write_whole

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED_TO = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"

_VERSION = "0"
Partition = tuple[str, int]


def encode(lines: Iterable[str]) -> bytes:
    """The file of these lines."""
    content = list(lines)
    return "".join(f"{line}\n" for line in (_VERSION, str(len(content)), *content)).encode()


def decode(data: bytes, where: str) -> list[list[str]]:
    """The words of each line; an empty file has none. Raises LogCorrupt."""
    text = data.decode("utf-8", "replace")
    if not text.strip():
        return []
    version, *rest = text.splitlines()
    if version.strip() != _VERSION:
        raise LogCorrupt(f"{where}: version {version[:20]!r}; only {_VERSION} is known")
    if not rest:
        return []
    count, *lines = rest
    if not count.strip().isdecimal() or int(count) != len(lines):
        raise LogCorrupt(f"{where}: it says {count[:20]!r} lines and has {len(lines)}")
    return [line.split() for line in lines]


def read_offsets(path: Path) -> dict[Partition, int]:
    """Topic and partition to offset; empty if there is no file. Raises LogCorrupt."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    found: dict[Partition, int] = {}
    for words in decode(data, path.name):
        if len(words) != 3 or not words[1].isdecimal() or not words[2].removeprefix("-").isdecimal():
            raise LogCorrupt(f"{path.name}: {' '.join(words)[:80]!r} is not a topic, a partition and an offset")
        found[words[0], int(words[1])] = int(words[2])
    return found


def write_offsets(path: Path, offsets: Mapping[Partition, int]) -> None:
    """Replace the file."""
    write_whole(path, encode(f"{topic} {number} {offset}" for (topic, number), offset in sorted(offsets.items())))
