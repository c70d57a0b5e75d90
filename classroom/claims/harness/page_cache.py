"""Which pages of a file are in memory (mincore), and how to put them out (fadvise); without root."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

from classroom.claims.claim import CannotTell

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


class Pages:
    """The pages of one file. Looking at them does not bring them into memory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def resident(self, start: int = 0, end: int | None = None) -> tuple[int, int]:
        """How many pages of a range are in memory, and how many it has."""
        with self.path.open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                return 0, 0
            vector = self._look(file.fileno(), size)
        chosen = vector[start // PAGE : -(-min(size if end is None else end, size) // PAGE)]
        return sum(page & 1 for page in chosen), len(chosen)

    def evict(self) -> None:
        """Put every page out of memory; what is not on disk yet is written first."""
        with self.path.open("r+b") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    @staticmethod
    def _look(fd: int, size: int) -> bytes:
        with mmap.mmap(fd, size) as view:
            # mincore wants an address, which only a writable view gives away; nothing is written to it.
            vector = (ctypes.c_ubyte * -(-size // PAGE))()
            anchor = ctypes.c_char.from_buffer(view)
            failed = _libc.mincore(ctypes.c_void_p(ctypes.addressof(anchor)), ctypes.c_size_t(size), vector)
            del anchor
            if failed:
                raise CannotTell(f"mincore is refused here: {os.strerror(ctypes.get_errno())}")
            return bytes(vector)


def resident_share(paths: Iterable[Path]) -> float:
    """The share of some files that is in memory."""
    found = [Pages(path).resident() for path in paths]
    total = sum(pages for _, pages in found)
    return sum(resident for resident, _ in found) / total if total else 0.0


def evict(paths: Iterable[Path]) -> None:
    """Put files out of memory; CannotTell where the file system does not let go of them (tmpfs)."""
    known = list(paths)
    for path in known:
        Pages(path).evict()
    left = resident_share(known)
    if left > 0.1:
        raise CannotTell(f"{left:.0%} of the files stay in memory when told to go: is {known[0].parent} a tmpfs?")
