"""Bytes that are sent from a file without being read: what sendfile needs to know of them. Paper: §3.1."""

from __future__ import annotations

from typing import Protocol


class FileRange(Protocol):
    """Bytes of a file that stay readable until ``close`` (the log's FileSlice)."""

    @property
    def fd(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...
    def close(self) -> None:
        """Let go of the file."""
