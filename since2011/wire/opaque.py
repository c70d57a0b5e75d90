"""Big-endian integers, counted strings and byte arrays, read and written without copying more than needed.

These are the classic (never flexible) encodings that live inside opaque
fields: subscriptions, assignments and the records of the offsets log.
"""

from __future__ import annotations

import struct

_I16, _I32, _I64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


class Writer:
    """Append values; every method returns the writer."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def i16(self, value: int) -> Writer:
        self._parts.append(_I16.pack(value))
        return self

    def i32(self, value: int) -> Writer:
        self._parts.append(_I32.pack(value))
        return self

    def i64(self, value: int) -> Writer:
        self._parts.append(_I64.pack(value))
        return self

    def string(self, value: str) -> Writer:
        data = value.encode()
        self._parts += (_I16.pack(len(data)), data)
        return self

    def nullable(self, value: str | None) -> Writer:
        return self.i16(-1) if value is None else self.string(value)

    def blob(self, value: bytes | None) -> Writer:
        if value is None:
            return self.i32(-1)
        self._parts += (_I32.pack(len(value)), value)
        return self

    def bytes(self) -> bytes:
        return b"".join(self._parts)


class Reader:
    """Take values off the front; ValueError when the bytes end early or a length cannot be."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def remaining(self) -> int:
        return len(self._data) - self._at

    def i16(self) -> int:
        return int(_I16.unpack(self.take(2))[0])

    def i32(self) -> int:
        return int(_I32.unpack(self.take(4))[0])

    def i64(self) -> int:
        return int(_I64.unpack(self.take(8))[0])

    def string(self) -> str:
        value = self.nullable()
        if value is None:
            raise ValueError("null where a string must be")
        return value

    def nullable(self) -> str | None:
        size = self.i16()
        return None if size == -1 else self.take(size).decode()

    def blob(self) -> bytes:
        return self.nullable_blob() or b""

    def nullable_blob(self) -> bytes | None:
        size = self.i32()
        return None if size == -1 else self.take(size)

    def count(self) -> int:
        """The length of an array, never more than the bytes that are left could hold."""
        n = self.i32()
        if n > self.remaining:
            raise ValueError(f"an array of {n} items in {self.remaining} bytes")
        return max(n, 0)

    def take(self, size: int) -> bytes:
        if size < 0 or size > self.remaining:
            raise ValueError(f"{size} bytes wanted, {self.remaining} left")
        self._at += size
        return self._data[self._at - size : self._at]
