"""Bytes to values and back, one primitive at a time, in the classic and in the flexible encoding.

A length is believed only after it was held against the bytes that are really there, so a short frame that promises
a billion items costs nothing. Everything wrong raises InvalidRequest.

See docs/modern-port.md.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable

from kafka2011.errors import InvalidRequest
from kafka2011.wire.file_range import FileRange

MAX_ITEMS = 50_000
"""Array items in one frame, all arrays together. It bounds the memory a frame of tiny items turns into."""

_I8, _I16, _I32, _I64, _F64 = (struct.Struct(code) for code in (">b", ">h", ">i", ">q", ">d"))
NO_UUID = uuid.UUID(int=0)


def _number(form: struct.Struct) -> Callable[[Reader], int]:
    """A method that reads one number; each kind has its own, because there are many in a request."""
    unpack, size = form.unpack_from, form.size

    def read(self: Reader) -> int:
        at = self.at
        try:
            value: int = unpack(self._data, at)[0]
        except struct.error:
            end = len(self._data)
            raise InvalidRequest(f"the frame ends at byte {end}, inside a number that begins at byte {at}") from None
        self.at = at + size
        return value

    return read


class Reader:
    """Read a frame from front to back. Thread: one."""

    __slots__ = ("_data", "_end", "_items", "at")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data, self._end, self.at = data, len(data), at
        self._items = 0

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return self._end - self.at

    def take(self, size: int, what: str) -> bytes:
        """The next ``size`` bytes."""
        at = self.at
        if size < 0 or size > self._end - at:
            raise InvalidRequest(f"{what} at byte {at} needs {size} bytes, the frame has {self._end - at} left")
        self.at = at + size
        return self._data[at : self.at]

    i8, i16, i32, i64, _f64 = (_number(form) for form in (_I8, _I16, _I32, _I64, _F64))

    def f64(self) -> float:
        return float(self._f64())

    def bool(self) -> bool:
        return self.i8() != 0

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self.take(16, "a uuid"))

    def varint(self) -> int:
        """An unsigned varint of at most 32 bits."""
        at = self.at
        if at < self._end and self._data[at] < 0x80:
            # One byte, as nearly all of them are.
            self.at = at + 1
            return self._data[at]
        value = shift = 0
        while shift < 35:
            byte = self.take(1, "a varint")[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFF_FFFF:
                    break
                return value
            shift += 7
        raise InvalidRequest(f"a varint before byte {self.at} is longer than 32 bits")

    def text(self, size: int) -> str:
        """``size`` bytes of UTF-8."""
        try:
            return self.take(size, "a string").decode()
        except UnicodeDecodeError:
            raise InvalidRequest(f"a string before byte {self.at} is not UTF-8") from None

    def count(self, count: int, item_size: int) -> int:
        """Accept an array length only if that many items can be there."""
        if count < 0 or count * item_size > self.remaining:
            raise InvalidRequest(f"an array of {count} items before byte {self.at}, {self.remaining} bytes left")
        self._items += count
        if self._items > MAX_ITEMS:
            raise InvalidRequest(f"more than {MAX_ITEMS} array items in one request; send several requests")
        return count

    def tags(self) -> list[tuple[int, Reader]]:
        """A block of tagged fields: number and content of each. Whoever does not know a number passes it over."""
        count = self.varint()
        if not count:
            return []
        found = []
        for _ in range(self.count(count, 2)):
            tag = self.varint()
            found.append((tag, Reader(self.take(self.varint(), "a tagged field"))))
        return found


Part = bytes | FileRange
"""A piece of a message on its way out; a range of a file is not read."""
Put = Callable[[Part], None]


def put_varint(value: int) -> bytes:
    """An unsigned varint."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


PACK: dict[str, Callable[[int], bytes]] = {
    "i8": _I8.pack,
    "i16": _I16.pack,
    "i32": _I32.pack,
    "i64": _I64.pack,
    "f64": _F64.pack,
}
WIDTH = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f64": 8, "bool": 1, "uuid": 16}
