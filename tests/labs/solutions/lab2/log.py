"""Lab 2, a model solution: the log of one partition."""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import Protocol


class Tools(Protocol):
    """What the tests give to the log."""

    def intact(self, data: bytes) -> int:
        """How many bytes from the front are whole, undamaged messages."""


class OutOfRange(Exception):
    """``OutOfRange(offset)``: the log does not hold that offset."""


class Gap(Exception):
    """``Gap(offset)``: no segment file begins at the offset at which the file before it ends."""


class Log:
    """Segment files in one directory, each named by the offset of its first byte."""

    def __init__(self, directory: str, segment_bytes: int, tools: Tools) -> None:
        self._directory, self._segment_bytes = directory, segment_bytes
        names = (name.split(".") for name in os.listdir(directory))
        self._bases = sorted(int(base) for base, *rest in names if rest == ["kafka"] and base.isdigit()) or [0]
        for base, following in zip(self._bases, self._bases[1:], strict=False):
            ends = base + os.path.getsize(self._path(base))
            if ends != following:
                raise Gap(ends)
        last = self._path(self._bases[-1])
        with open(last, "ab"):
            pass
        with open(last, "rb") as file:
            kept = tools.intact(file.read())
        os.truncate(last, kept)
        self._end = self._bases[-1] + kept

    def append(self, data: bytes) -> int:
        """Write a message set at the end; the offset of its first byte."""
        offset = self._end
        if offset - self._bases[-1] >= self._segment_bytes:
            self._bases.append(offset)
        with open(self._path(self._bases[-1]), "ab", buffering=0) as file:
            file.write(data)
        self._end += len(data)
        return offset

    def read(self, offset: int, max_bytes: int) -> bytes:
        """At most ``max_bytes`` from ``offset`` on, from one segment file."""
        if not self._bases[0] <= offset <= self._end:
            raise OutOfRange(offset)
        base = self._bases[bisect_right(self._bases, offset) - 1]
        with open(self._path(base), "rb") as file:
            file.seek(offset - base)
            return file.read(max_bytes)

    def segments(self) -> list[int]:
        """The first offset of each file, in order."""
        return list(self._bases)

    def end(self) -> int:
        """The offset at which the next message will be written."""
        return self._end

    def delete_before(self, offset: int) -> list[int]:
        """Delete every file that lies wholly before ``offset``, but never the last."""
        deleted = []
        while len(self._bases) > 1 and self._bases[1] <= offset:
            deleted.append(self._bases.pop(0))
            os.remove(self._path(deleted[-1]))
        return deleted

    def _path(self, base: int) -> str:
        return os.path.join(self._directory, f"{base:020}.kafka")
