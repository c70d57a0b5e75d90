"""Answers that clients have asked for and do not take.

A fetch answer is made in memory, because a 2011 log must be turned into records. One that its client does not read
stays there, and clients are many. So all of them together have a limit; over it, who has left an answer untaken for
longest is closed. A client that reads is never among them for long.

See docs/modern-port.md.
"""

from __future__ import annotations

from typing import Protocol


class Taker(Protocol):
    """A connection, as far as this is concerned."""

    def drop(self, kind: str, reason: str) -> None:
        """Close it at once; it then calls ``taken``."""


class Untaken:
    """Bytes that wait for their readers, by connection. Thread: reactor."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Insertion order is age: the first has waited longest.
        self._sizes: dict[Taker, int] = {}
        self.total = 0

    def add(self, taker: Taker, size: int) -> None:
        """``taker`` was sent ``size`` bytes that it has not taken yet."""
        self._sizes[taker] = self._sizes.get(taker, 0) + size
        self.total += size
        while self.total > self._most:
            slowest = next(iter(self._sizes))
            self.taken(slowest)
            slowest.drop("untaken", f"it did not read its answers, and {self._most} bytes of all clients' are waiting")

    def taken(self, taker: Taker) -> None:
        """``taker`` has taken everything, or is gone. Idempotent."""
        self.total -= self._sizes.pop(taker, 0)
