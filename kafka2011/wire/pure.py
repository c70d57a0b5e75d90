"""Walk a message set: find its entries, check their CRCs, cut its messages out; and make one. In Python, to be read.

Paper: §3.1 (the next offset is the current one plus the length of the message), §3.3 (a CRC for each message).

``_walk.c`` does the same, function by function, some twenty times as fast; ``walk`` chooses. The tests run over both.

An entry is *plain* if it is whole, of magic 0 or 1, not a wrapper, and its CRC is right. The functions here go over
plain entries and stop before the first that is not. What that one is (a wrapper, the partial tail of a fetch, damage)
``entry.read_entry`` says, in one place and with a good error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeVar

from isal.isal_zlib import crc32

VERSION = 1
"""Raised together with ``_walk.c``'s whenever a name, an argument or a result changes."""

T = TypeVar("T")

_magic_1 = struct.Struct(">iBBI")
_magic_0 = struct.Struct(">iBI")
_magic_and_attributes_1 = struct.Struct(">iHI")
_length = struct.Struct(">i")


@lru_cache(maxsize=256)
def _struct(layout: str) -> struct.Struct:
    return struct.Struct(layout)


def _rows(layout: str, data: bytes, pos: int) -> Iterator[tuple[Any, ...]]:
    """Read rows of one layout from ``pos`` on, as many as are whole.

    Log events of one kind are often of one size. Where a size comes twice, all that follows is read as rows of it, for
    as long as each begins with the same bytes: in half the time of finding each where the one before it ends.
    """
    row = _struct(layout)
    return row.iter_unpack(memoryview(data)[pos : len(data) - (len(data) - pos) % row.size])


def check(data: bytes | memoryview, pos: int, wrappers: bool, /) -> tuple[int, int, int]:
    """Check the plain entries from ``pos`` on: where they end, how many they are, the bytes of the largest payload.

    With ``wrappers`` a compressed entry counts as plain: it is not opened.
    """
    if not isinstance(data, bytes):
        data = bytes(data)  # of which slices are quick
    count = largest = before = 0
    end, unpack = len(data), _magic_1.unpack_from
    last, codec = end - _magic_1.size, 0 if wrappers else 3
    while pos <= last:
        n, magic, attributes, crc = unpack(data, pos)
        after = pos + 4 + n
        if magic == 1 and n >= 6 and after <= end and not attributes & codec:
            if n == before:
                head, before, first = data[pos : pos + 6], 0, count
                for other, crc, payload in _rows(f">6sI{n - 6}s", data, pos):
                    if other != head or crc32(payload) != crc:
                        break
                    count += 1
                pos += (count - first) * (4 + n)
                continue
            before, payload = n, data[pos + 10 : after]
        elif magic == 0 and n >= 5 and after <= end:
            crc, payload = _magic_0.unpack_from(data, pos)[2], data[pos + 9 : after]
        else:
            return pos, count, largest
        if crc32(payload) != crc:
            return pos, count, largest
        if len(payload) > largest:
            largest = len(payload)
        count += 1
        pos = after
    if _is_empty_magic_0(data, pos):
        return end, count + 1, largest
    return pos, count, largest


class Row(Iterable[T]):
    """Messages of one magic that follow each other, made while they are iterated over, each time anew.

    Each is a ``kind`` of ``(payload, offset, next_offset, magic)``. A set that waits in a queue is thus a few objects
    and not thousands, which the garbage collector would look through again and again.

    Messages inside a wrapper have no offsets of their own. For them ``at`` is set to the wrapper's offset, which they
    share, and ``after`` to where to go on after the last one of this row.
    """

    __slots__ = ("_data", "_head", "_kind", "_payloads", "after", "at", "offsets")

    def __init__(
        self,
        kind: Callable[[tuple[bytes, int, int, int]], T],
        data: memoryview,
        head: int,
        payloads: list[bytes],
        offsets: list[int],
    ) -> None:
        self._kind, self._data, self._head, self._payloads = kind, data, head, payloads
        self.offsets: Sequence[int] = offsets
        """Where the entries begin, and where the last one ends."""
        self.at = self.after = -1

    def __len__(self) -> int:
        return len(self._payloads)

    def __iter__(self) -> Iterator[T]:
        begins, ends = self.offsets, self.offsets[1:]
        if self.at >= 0:
            begins = [self.at] * len(self)
            ends = [*begins[1:], self.after]
        return map(self._kind, zip(self._payloads, begins, ends, repeat(self._head - 9)))

    def views(self) -> list[memoryview]:
        """The payloads, not copied."""
        data, first, head = self._data, self.offsets[0], self._head
        bounds = zip(self.offsets[:-1], self.offsets[1:], strict=True)
        return [data[begin - first + head : end - first] for begin, end in bounds]


def cut(
    kind: Callable[[tuple[bytes, int, int, int]], T], data: bytes | memoryview, pos: int, base: int, /
) -> tuple[int, Row[T]]:
    """Check and cut out the plain entries of one magic from ``pos`` on; return where they end, and their messages.

    ``base`` is the offset of the first byte of ``data``.
    """
    if not isinstance(data, bytes):
        data = bytes(data)  # of which slices are quick
    start, end, unpack = pos, len(data), _magic_1.unpack_from
    payloads: list[bytes] = []
    offsets = [base + pos]
    one = pos + 4 < end and data[pos + 4] == 1
    last, before = end - _magic_1.size, 0
    while pos <= last:
        n, magic, attributes, crc = unpack(data, pos)
        after = pos + 4 + n
        if magic == 1 and one and n >= 6 and after <= end and not attributes & 3:
            if n == before:
                head, before, first = data[pos : pos + 6], 0, len(payloads)
                for other, crc, payload in _rows(f">6sI{n - 6}s", data, pos):
                    if other != head or crc32(payload) != crc:
                        break
                    payloads.append(payload)
                pos += (len(payloads) - first) * (4 + n)
                offsets += range(offsets[-1] + 4 + n, base + pos + 1, 4 + n)
                continue
            before, payload = n, data[pos + 10 : after]
        elif magic == 0 and not one and n >= 5 and after <= end:
            crc, payload = _magic_0.unpack_from(data, pos)[2], data[pos + 9 : after]
        else:
            break
        if crc32(payload) != crc:
            break
        payloads.append(payload)
        offsets.append(base + after)
        pos = after
    if not one and _is_empty_magic_0(data, pos):
        pos = end
        payloads.append(b"")
        offsets.append(base + end)
    return pos, Row(kind, memoryview(data)[start:pos], 10 if one else 9, payloads, offsets)


def _is_empty_magic_0(data: bytes, pos: int) -> bool:
    """Tell whether the last entry is the one that is shorter than a head of magic 1."""
    return len(data) - pos == _magic_0.size and _magic_0.unpack_from(data, pos) == (5, 0, 0)


def encode(payloads: Iterable[bytes], head: bytes, batch_size: int, most: int, /) -> bytes:
    """Lay payloads out as entries of magic 1, each after its length and CRC.

    With a ``head`` as produce requests of ``batch_size`` messages each, end to end: size, ``head``, size of the set,
    entries. Raises OverflowError if a set of several messages is larger than ``most`` bytes.
    """
    payloads = payloads if isinstance(payloads, list) else list(payloads)
    pack = _magic_and_attributes_1.pack
    entries = [b""] * (2 * len(payloads))
    entries[0::2] = [pack(len(p) + 6, 0x0100, crc32(p)) for p in payloads]
    entries[1::2] = payloads
    if not head:
        return b"".join(entries)
    parts = []
    for start in range(0, len(entries), 2 * batch_size):
        data = b"".join(entries[start : start + 2 * batch_size])
        if len(data) > most and 10 + len(entries[start + 1]) < len(data):
            raise OverflowError(f"a message set of more than {most} bytes")
        parts += [_length.pack(len(head) + 4 + len(data)), head, _length.pack(len(data)), data]
    return b"".join(parts)


def split(data: bytes, pos: int, smallest: int, largest: int, /) -> tuple[list[bytes], int, int]:
    """Cut whole frames out of ``data``: the frames without their sizes, where they end, and the next frame's size.

    That size is -1 where fewer than four bytes are left. One below ``smallest`` or above ``largest`` ends the cutting.
    """
    frames: list[bytes] = []
    end, unpack, before = len(data), _length.unpack_from, -1
    while end - pos >= 4:
        (size,) = unpack(data, pos)
        if not smallest <= size <= largest or end - pos - 4 < size:
            return frames, pos, size
        if size == before:
            head, before, first = data[pos : pos + 4], -1, len(frames)
            for other, frame in _rows(f"4s{size}s", data, pos):
                if other != head:
                    break
                frames.append(frame)
            pos += (len(frames) - first) * (4 + size)
            continue
        before = size
        frames.append(data[pos + 4 : pos + 4 + size])
        pos += 4 + size
    return frames, pos, -1


class Hand(Iterator[Any]):
    """Hand messages out one by one, and know which one is in the application's hand.

    ``more()`` gives the next messages, or None at the end (which may be asked again). While ``gate`` is set, each
    message is handed out only if ``may_pass()`` allows it; if not, the rest of its chunk is dropped.

    ``in_hand`` is stored before ``gate`` is looked at: whoever sets the gate first and then reads ``in_hand`` knows
    that nothing after it gets out.
    """

    __slots__ = ("_loop", "_may_pass", "_more", "gate", "in_hand", "rest")

    def __init__(self, more: Callable[[], Iterable[Any] | None], may_pass: Callable[[], bool], /) -> None:
        self._more, self._may_pass = more, may_pass
        self.gate = False
        self.in_hand: Any = None
        self.rest: Iterator[Any] | None = None
        self._loop: Iterator[Any] = iter(())

    def __iter__(self) -> Iterator[Any]:
        """Messages until ``more`` gives none."""
        while True:
            rest = self.rest
            for message in rest or ():
                self.in_hand = message
                if self.gate:
                    if not self._may_pass():
                        self.rest = None
                        break
                    if self.rest is not rest:
                        yield message  # the last of this chunk: what was to follow has been taken away
                        break
                yield message
            more = self._more()
            self.rest = None if more is None else iter(more)
            if more is None:
                return

    def __next__(self) -> Any:
        """The next message; StopIteration when there is none now. Can be asked again."""
        for message in self._loop:
            return message
        self._loop = iter(self)
        return next(self._loop)
