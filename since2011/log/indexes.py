"""The three indexes of a segment: offset to position, time to offset, aborted transactions.

    .index      relative offset i32, position i32                            8 bytes
    .timeindex  timestamp i64, relative offset i32                          12 bytes
    .txnindex   version i16 = 0, producer id, first, last, last stable i64   34 bytes

Sparse: an entry per so many bytes of log, so a look-up finds a place to scan from. An offset entry carries the *last*
offset of an append and the position of its *start*. Plain appended files, always exact: a real broker takes every byte
of an index as entries, and trims its own, which it maps at full size, when it closes them.

The paper's answer (§3.1): no index at all.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kafka2011.errors import LogCorrupt

_OFFSET = struct.Struct(">ii")
_TIME = struct.Struct(">qi")
_ABORTED = struct.Struct(">hqqqq")


class IndexFile:
    """A file of entries of one size, with a copy in memory. Thread: one."""

    def __init__(self, path: Path, entry_size: int) -> None:
        self.path, self._entry_size = path, entry_size
        self._fd: int | None = None
        self.existed = path.exists()

    def read(self) -> bytes:
        """Every whole entry of the file; empty if there is no file."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return b""
        return data[: len(data) - len(data) % self._entry_size]

    def append(self, entry: bytes) -> None:
        """Write one more entry."""
        os.write(self._open(), entry)

    def truncate(self, n_entries: int) -> None:
        """Keep the first entries."""
        os.ftruncate(self._open(), n_entries * self._entry_size)

    def create(self) -> None:
        """Make the file, if there is none."""
        self._open()

    def sync(self) -> None:
        """Force it to disk."""
        if self._fd is not None:
            os.fsync(self._fd)

    def close(self) -> None:
        """Let go of the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> int:
        if self._fd is None:
            self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._fd


class OffsetIndex:
    """Relative offsets and positions, both rising. Thread: one."""

    def __init__(self, path: Path, base_offset: int, max_bytes: int) -> None:
        self._file = IndexFile(path, _OFFSET.size)
        self._base, self._max = base_offset, max_bytes // _OFFSET.size
        self.existed = self._file.existed
        self.offsets: list[int] = []
        self.positions: list[int] = []

    def load(self) -> None:
        """Read the entries; raise LogCorrupt if they do not rise."""
        entries = list(_OFFSET.iter_unpack(self._file.read()))
        self.offsets = [self._base + relative for relative, _ in entries]
        self.positions = [position for _, position in entries]
        if not _rising(self.offsets) or not _rising(self.positions) or (self.offsets and self.offsets[0] < self._base):
            raise LogCorrupt(f"{self._file.path.name}: its entries do not rise")
        self._file.create()

    @property
    def full(self) -> bool:
        return len(self.offsets) >= self._max

    def append(self, offset: int, position: int) -> None:
        """Note that the append with this last offset begins at ``position``."""
        self._file.append(_OFFSET.pack(offset - self._base, position))
        self.offsets.append(offset)
        self.positions.append(position)

    def position_of(self, offset: int) -> int:
        """A position from which a scan finds the batch with ``offset``."""
        place = bisect_right(self.offsets, offset) - 1
        return self.positions[place] if place >= 0 else 0

    def upper_bound(self, position: int) -> int | None:
        """The offset of the first entry at or after ``position``; None if there is none."""
        place = bisect_right(self.positions, position - 1)
        return self.offsets[place] if place < len(self.offsets) else None

    def truncate(self, offset: int) -> None:
        """Forget entries of ``offset`` and beyond."""
        keep = bisect_right(self.offsets, offset - 1)
        self._file.truncate(keep)
        del self.offsets[keep:], self.positions[keep:]

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()


class TimeIndex:
    """Timestamps and the offsets at which they were reached. Thread: one."""

    def __init__(self, path: Path, base_offset: int, max_bytes: int) -> None:
        self._file = IndexFile(path, _TIME.size)
        self._base, self._max = base_offset, max_bytes // _TIME.size
        self.existed = self._file.existed
        self.times: list[int] = []
        self.offsets: list[int] = []

    def load(self) -> None:
        """Read the entries; raise LogCorrupt if times fall or offsets do."""
        entries = list(_TIME.iter_unpack(self._file.read()))
        self.times = [time for time, _ in entries]
        self.offsets = [self._base + relative for _, relative in entries]
        falling = any(a > b for a, b in pairwise(self.offsets))
        if not _rising(self.times) or falling or (self.offsets and self.offsets[0] < self._base):
            raise LogCorrupt(f"{self._file.path.name}: its entries do not rise")
        self._file.create()

    @property
    def full(self) -> bool:
        """One place is kept for the last entry, which is written when the segment is closed."""
        return len(self.times) >= self._max - 1

    @property
    def last(self) -> tuple[int, int]:
        """The largest timestamp noted, and the offset that had it."""
        return (self.times[-1], self.offsets[-1]) if self.times else (-1, self._base)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Note a timestamp, if it is larger than all before."""
        if timestamp > self.last[0]:
            self._file.append(_TIME.pack(timestamp, offset - self._base))
            self.times.append(timestamp)
            self.offsets.append(offset)

    def offset_before(self, timestamp: int) -> int:
        """An offset before which no record has this timestamp or a later one."""
        place = bisect_right(self.times, timestamp) - 1
        return self.offsets[place] if place >= 0 else self._base

    def truncate(self, offset: int) -> None:
        """Forget entries of ``offset`` and beyond."""
        keep = bisect_right(self.offsets, offset - 1)
        self._file.truncate(keep)
        del self.times[keep:], self.offsets[keep:]

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()


class Aborted(NamedTuple):
    """A transaction that ended with an abort: ``last_offset`` is its marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    """Transactions whose abort marker lies in this segment. The file exists only if there is one. Thread: one."""

    def __init__(self, path: Path) -> None:
        self._file = IndexFile(path, _ABORTED.size)
        self.entries: list[Aborted] = []

    def load(self, base_offset: int) -> None:
        """Read the entries; raise LogCorrupt if they cannot be of this segment."""
        found = list(_ABORTED.iter_unpack(self._file.read()))
        if any(version != 0 for version, *_ in found):
            raise LogCorrupt(f"{self._file.path.name}: an entry of an unknown version")
        self.entries = [Aborted(*fields) for _, *fields in found]
        lasts = [entry.last_offset for entry in self.entries]
        if not _rising(lasts) or (lasts and lasts[0] < base_offset):
            raise LogCorrupt(f"{self._file.path.name}: an entry of another segment")

    def append(self, aborted: Aborted) -> None:
        """Note one more."""
        self._file.append(_ABORTED.pack(0, *aborted))
        self.entries.append(aborted)

    def truncate(self, offset: int) -> None:
        """Forget transactions whose marker is at ``offset`` or beyond."""
        kept = [entry for entry in self.entries if entry.last_offset < offset]
        if kept != self.entries:
            self._file.truncate(len(kept))
            self.entries = kept

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()


def _rising(numbers: list[int]) -> bool:
    return all(a < b for a, b in pairwise(numbers))
