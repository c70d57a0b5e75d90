"""Cut a byte stream into frames: i32 size, then that many bytes.

The size is checked before anything is kept for it, so that four bytes from a stranger never allocate a gigabyte.
"""

from __future__ import annotations

from kafka2011.errors import InvalidRequest
from kafka2011.wire import walk

SMALLEST = 2
"""A frame holds at least its key, or its error code."""


class FrameSplitter:
    """Feed it what arrives; it gives back whole frames without their size. Thread: one.

    Frames complete before a bad size are given back first; ``broken`` is then set and the next feed raises it.
    """

    def __init__(self, max_size: int = 100 * 1024 * 1024) -> None:
        self.max_size = max_size
        self.broken: InvalidRequest | None = None
        self._parts: list[bytes] = []
        self._held = 0
        self._needed = 4

    @property
    def pending(self) -> int:
        """Bytes of an unfinished frame held so far."""
        return self._held

    def feed(self, data: bytes) -> list[bytes]:
        """Take ``data``; return the frames it completes. Raises InvalidRequest on a size that cannot be."""
        if self.broken:
            raise self.broken
        if self._held + len(data) < self._needed:
            self._parts.append(data)
            self._held += len(data)
            return []
        frames: list[bytes] = []
        pos = 0
        if self._needed > 4:
            # Only the unfinished frame is copied together; those after it are cut out of ``data`` as it came.
            pos = self._needed - self._held
            frames.append(b"".join((*self._parts, data[:pos]))[4:])
        elif self._held:
            data = b"".join((*self._parts, data))
        cut, pos, size = walk.split(data, pos, SMALLEST, self.max_size)
        frames += cut
        self._held = len(data) - pos
        if self._held >= 4 and not SMALLEST <= size <= self.max_size:
            self._parts, self._held = [], 0
            self.broken = InvalidRequest(f"a frame of {size} bytes; {SMALLEST} to {self.max_size} are accepted")
            if not frames:
                raise self.broken
            return frames
        self._parts = [data[pos:]] if self._held else []
        self._needed = 4 if self._held < 4 else 4 + size
        return frames
