"""Lab 2: the log of one partition. Fill the holes; the page README.md says what each method has to do."""

from __future__ import annotations

from typing import Protocol


class Tools(Protocol):
    """What the tests give to your log: lab 1, done."""

    def intact(self, data: bytes) -> int:
        """How many bytes from the front are whole, undamaged messages."""


class OutOfRange(Exception):
    """``OutOfRange(offset)``: the log does not hold that offset."""


class Gap(Exception):
    """``Gap(offset)``: no segment file begins at the offset at which the file before it ends."""


class Log:
    """Segment files in one directory, each named by the offset of its first byte."""

    def __init__(self, directory: str, segment_bytes: int, tools: Tools) -> None:
        raise NotImplementedError("Log: list the files, check that they follow each other, cut a torn tail")

    def append(self, data: bytes) -> int:
        """Write a message set at the end; the offset of its first byte."""
        raise NotImplementedError("append: begin a new file if the last one is full, then write")

    def read(self, offset: int, max_bytes: int) -> bytes:
        """At most ``max_bytes`` from ``offset`` on, from one segment file."""
        raise NotImplementedError("read: find the file by search, then read from it")

    def segments(self) -> list[int]:
        """The first offset of each file, in order."""
        raise NotImplementedError("segments")

    def end(self) -> int:
        """The offset at which the next message will be written."""
        raise NotImplementedError("end")

    def delete_before(self, offset: int) -> list[int]:
        """Delete every file that lies wholly before ``offset``, but never the last; their first offsets."""
        raise NotImplementedError("delete_before")
