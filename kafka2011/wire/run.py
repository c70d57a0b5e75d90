"""Runs of equal entries, and of equal requests, cut out, checked and made at the speed of C.

Log events of one kind are often of one size. Entries with the same length, magic and attributes repeat with a fixed
stride, so strided slices of the bytes tell how long such a run is, and one Struct cuts all its payloads out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from isal.isal_zlib import crc32

_HEAD = 6
"""Length, magic and attributes of a magic-1 entry: what must be equal."""
_FIRST_TRY = 32
_LONGEST = 4096
_WORTH_IT = 16
_PACKED_AT_ONCE = 256
_BLOCKS = (256, 16, 1)
"""Entries cut out by one Struct: first many at a time, then the rest."""


def are_alike(payloads: Sequence[bytes]) -> bool:
    """Tell whether these are enough payloads, all of one length, to be packed as a run."""
    return len(payloads) >= _WORTH_IT and len(set(map(len, payloads))) == 1


def pack_run(head: bytes, payloads: Sequence[bytes]) -> Iterator[bytes]:
    """Lay out payloads of one length, each after ``head`` and its CRC (§3.3)."""
    for start in range(0, len(payloads), _PACKED_AT_ONCE):
        some = payloads[start : start + _PACKED_AT_ONCE]
        parts: list[bytes | int] = [head] * (3 * len(some))
        parts[1::3] = map(crc32, some)
        parts[2::3] = some
        yield _packer(len(head), len(some[0]), len(some))(*parts)


@lru_cache(maxsize=64)
def _packer(head: int, payload: int, count: int) -> Callable[..., bytes]:
    return struct.Struct(">" + f"{head}sI{payload}s" * count).pack


class RunFinder:
    """Find runs in some bytes. Looks a short way first, and not again for a while where sizes vary."""

    __slots__ = ("_most", "next_try")

    def __init__(self) -> None:
        self._most = _FIRST_TRY
        self.next_try = 0

    def length(self, data: bytes, pos: int, size: int, width: int) -> int:
        """How many rows of ``size`` bytes from ``pos`` on begin with the same ``width`` bytes; 0 if hardly any.

        To be asked from ``next_try`` on.
        """
        count = run_length(data, pos, size, width, self._most)
        if count < _WORTH_IT:
            self.next_try = pos + 64 * size
            self._most = _FIRST_TRY
            return 0
        self._most = _LONGEST
        return count

    def payloads(self, data: bytes, pos: int, size: int) -> list[bytes] | None:
        """The payloads of the entries from ``pos`` on that are alike, or None if there is no run worth taking.

        None as well if a CRC in it is wrong (§3.3): the caller then goes entry by entry and finds which.
        """
        count = self.length(data, pos, size, _HEAD)
        if not count:
            return None
        payloads, crcs = _with_crcs(memoryview(data)[pos : pos + size * count], size)
        # The four bytes of all CRCs, compared a column at a time: no number is made of those that were written.
        if any(crcs[i::4] != data[pos + _HEAD + i : pos + size * count : size] for i in range(4)):
            self.next_try = len(data)
            return None
        return payloads


def _with_crcs(entries: memoryview, size: int) -> tuple[list[bytes], bytes]:
    """The payloads of entries of ``size`` bytes, and the CRCs that should stand before them."""
    payloads: list[bytes] = []
    crcs: list[bytes] = []
    for some in cut_out(entries, _HEAD + 4, size - _HEAD - 4):
        payloads += some
        crcs.append(_packed(len(some))(*map(crc32, some)))
    return payloads, b"".join(crcs)


def cut_out(rows: memoryview, skip: int, keep: int) -> Iterator[tuple[bytes, ...]]:
    """Of each row of ``skip + keep`` bytes the last ``keep``, many at a time."""
    done = 0
    for block in _BLOCKS:
        upto = len(rows) - (len(rows) - done) % ((skip + keep) * block)
        yield from _rows(skip, keep, block).iter_unpack(rows[done:upto])
        done = upto


def run_length(data: bytes, pos: int, size: int, width: int, most: int) -> int:
    """Count the rows of ``size`` bytes from ``pos`` on whose first ``width`` bytes are equal; at most ``most``."""
    count = min((len(data) - pos) // size, most)
    for i in range(pos, pos + width):
        column = data[i : pos + count * size : size]
        if column.count(column[0]) != count:
            count -= len(column.lstrip(column[:1]))
    return count


@lru_cache(maxsize=256)
def _rows(skip: int, keep: int, count: int) -> struct.Struct:
    return struct.Struct(f"{skip}x{keep}s" * count)


@lru_cache
def _packed(count: int) -> Callable[..., bytes]:
    return struct.Struct(f">{count}I").pack
