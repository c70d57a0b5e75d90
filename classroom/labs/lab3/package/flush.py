"""Lab 3: which messages readers may see. Fill the holes; the page README.md says what each method has to do."""

from __future__ import annotations

from typing import Protocol


class Disk(Protocol):
    """The disk the tests give you. Only what was flushed survives a power cut; see README.md."""

    def names(self) -> list[str]: ...

    def create(self, name: str) -> None: ...

    def read(self, name: str) -> bytes: ...

    def append(self, name: str, data: bytes) -> None: ...

    def truncate(self, name: str, length: int) -> None: ...

    def fsync(self, name: str) -> None: ...

    def fsync_directory(self) -> None: ...


class Tools(Protocol):
    """Lab 1, done."""

    def intact(self, data: bytes) -> int: ...


class DiskFailed(Exception):
    """A flush failed: this log takes no more messages until it is opened again."""


class FlushedLog:
    """A log in the file ``log``, whose readers see only what is flushed."""

    def __init__(self, disk: Disk, tools: Tools, flush_messages: int, flush_ms: int) -> None:
        raise NotImplementedError("FlushedLog: make the file, or recover what a crash left of it")

    def append(self, message: bytes, now_ms: int) -> int:
        """Write one message; flush if enough are waiting. Its offset."""
        raise NotImplementedError("append: write, count, flush when it is time")

    def tick(self, now_ms: int) -> None:
        """Called now and then: flush if a message has waited long enough."""
        raise NotImplementedError("tick: flush by time")

    def visible(self) -> int:
        """The offset up to which readers may read."""
        raise NotImplementedError("visible: the end of what is flushed")

    def read(self, offset: int, max_bytes: int) -> bytes:
        """At most ``max_bytes`` from ``offset`` on, and nothing that is not flushed."""
        raise NotImplementedError("read: never beyond visible()")
