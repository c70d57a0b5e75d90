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

import operator
import os
import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kafka2011.errors import LogCorrupt
from since2011.log.open_files import LogFile

_OFFSET = struct.Struct(">ii")
_TIME = struct.Struct(">qi")
_ABORTED = struct.Struct(">hqqqq")


class IndexFile:
    """A file of entries of one size, of which a copy is kept in memory. Thread: one."""

    def __init__(self, path: Path, entry_size: int) -> None:
        self._entry_size = entry_size
        self._file = LogFile(path, os.O_APPEND)
        self._unsynced = False

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    @path.setter
    def path(self, path: Path) -> None:
        self._file.path = path

    def _read(self) -> bytes | None:
        """Every whole entry of the file; None if there is no file."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        return data[: len(data) - len(data) % self._entry_size]

    def _write(self, entry: bytes) -> None:
        """Write one more entry."""
        self._unsynced = True
        os.write(self._file.create().fd, entry)

    def _keep(self, n_entries: int) -> None:
        """Keep the first entries."""
        self._unsynced = True
        os.ftruncate(self._file.create().fd, n_entries * self._entry_size)

    def _create(self) -> None:
        """Make the file, if there is none."""
        self._unsynced = True
        self._file.create()

    def sync(self) -> None:
        """Force what was written to disk."""
        if self._unsynced:
            self._unsynced = False
            os.fsync(self._file.open().fd)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class OffsetIndex(IndexFile):
    """Relative offsets and positions, both rising. Thread: one."""

    def __init__(self, path: Path, base_offset: int, max_bytes: int) -> None:
        super().__init__(path, _OFFSET.size)
        self._base, self._max = base_offset, max_bytes // _OFFSET.size
        self.existed = True
        """Whether ``load`` found a file."""
        self._relative, self.positions = array("i"), array("i")

    def load(self) -> None:
        """Read the entries, or make the file; raise LogCorrupt if they do not rise."""
        data = self._read()
        self.existed = data is not None
        if data is None:
            self._create()
            return
        numbers = array("i", data)
        if sys.byteorder == "little":
            numbers.byteswap()
        self._relative, self.positions = numbers[::2], numbers[1::2]
        negative = bool(numbers) and (self._relative[0] < 0 or self.positions[0] < 0)
        if negative or not _rising(self._relative) or not _rising(self.positions):
            raise LogCorrupt(f"{self.path.name}: its entries do not rise")

    @property
    def full(self) -> bool:
        return len(self._relative) >= self._max

    @property
    def offsets(self) -> list[int]:
        """The offsets of all entries."""
        return [self._base + relative for relative in self._relative]

    def append(self, offset: int, position: int) -> None:
        """Note that the append with this last offset begins at ``position``."""
        self._write(_OFFSET.pack(offset - self._base, position))
        self._relative.append(offset - self._base)
        self.positions.append(position)

    def position_of(self, offset: int) -> int:
        """A position from which a scan finds the batch with ``offset``."""
        place = bisect_right(self._relative, offset - self._base) - 1
        return self.positions[place] if place >= 0 else 0

    def upper_bound(self, position: int) -> int | None:
        """The offset of the first entry at or after ``position``; None if there is none."""
        place = bisect_right(self.positions, position - 1)
        return self._base + self._relative[place] if place < len(self._relative) else None

    def truncate(self, offset: int) -> None:
        """Forget entries of ``offset`` and beyond."""
        keep = bisect_right(self._relative, offset - self._base - 1)
        self._keep(keep)
        del self._relative[keep:], self.positions[keep:]


class TimeIndex(IndexFile):
    """Timestamps and the offsets at which they were reached. Thread: one."""

    def __init__(self, path: Path, base_offset: int, max_bytes: int) -> None:
        super().__init__(path, _TIME.size)
        self._base, self._max = base_offset, max_bytes // _TIME.size
        self.times, self.offsets = array("q"), array("q")

    def load(self) -> None:
        """Read the entries, or make the file; raise LogCorrupt if times fall or offsets do."""
        data = self._read()
        if data is None:
            self._create()
            return
        entries = list(_TIME.iter_unpack(data))
        self.times = array("q", [time for time, _ in entries])
        self.offsets = array("q", [self._base + relative for _, relative in entries])
        falling = any(a > b for a, b in pairwise(self.offsets))
        if not _rising(self.times) or falling or (self.offsets and self.offsets[0] < self._base):
            raise LogCorrupt(f"{self.path.name}: its entries do not rise")

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
            self._write(_TIME.pack(timestamp, offset - self._base))
            self.times.append(timestamp)
            self.offsets.append(offset)

    def offset_before(self, timestamp: int) -> int:
        """An offset before which no record has this timestamp or a later one."""
        place = bisect_right(self.times, timestamp) - 1
        return self.offsets[place] if place >= 0 else self._base

    def truncate(self, offset: int) -> None:
        """Forget entries of ``offset`` and beyond."""
        keep = bisect_right(self.offsets, offset - 1)
        self._keep(keep)
        del self.times[keep:], self.offsets[keep:]


class Aborted(NamedTuple):
    """A transaction that ended with an abort: ``last_offset`` is its marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex(IndexFile):
    """Transactions whose abort marker lies in this segment. The file exists only if there is one. Thread: one."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _ABORTED.size)
        self.entries: list[Aborted] = []

    def load(self, base_offset: int) -> None:
        """Read the entries; raise LogCorrupt if they cannot be of this segment."""
        found = list(_ABORTED.iter_unpack(self._read() or b""))
        if any(version != 0 for version, *_ in found):
            raise LogCorrupt(f"{self.path.name}: an entry of an unknown version")
        self.entries = [Aborted(*fields) for _, *fields in found]
        lasts = [entry.last_offset for entry in self.entries]
        if not _rising(lasts) or (lasts and lasts[0] < base_offset):
            raise LogCorrupt(f"{self.path.name}: an entry of another segment")

    def append(self, aborted: Aborted) -> None:
        """Note one more."""
        self._write(_ABORTED.pack(0, *aborted))
        self.entries.append(aborted)

    def truncate(self, offset: int) -> None:
        """Forget transactions whose marker is at ``offset`` or beyond."""
        kept = [entry for entry in self.entries if entry.last_offset < offset]
        if kept != self.entries:
            self._keep(len(kept))
            self.entries = kept


def _rising(numbers: Sequence[int]) -> bool:
    return all(map(operator.lt, numbers, numbers[1:]))
