"""The place of one answer in the order of a connection's answers. See docs/modern-port.md."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafka2011.wire.file_range import FileRange


class Owed:
    """The place of one answer in the order."""

    __slots__ = ("doing", "done", "parts", "turn")

    def __init__(self) -> None:
        self.doing: Deferred[None] | None = None
        self.turn: Deferred[None] | None = None
        """Somebody waits until this answer is the next to leave."""
        self.done = False
        self.parts: list[bytes | FileRange] = []

    def give_up(self) -> None:
        """Nobody waits for it any more: let go of its files, and of what still works on it."""
        for part in self.parts:
            if not isinstance(part, bytes):
                part.close()
        self.parts = []
        if self.doing is not None:
            self.doing.cancel()
