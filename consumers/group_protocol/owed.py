"""The place of one answer in the order of a connection's answers. Spec: modern-group-protocol §1.6."""

from __future__ import annotations

from twisted.internet.defer import Deferred


class Owed:
    """The place of one answer in the order."""

    __slots__ = ("doing", "done", "parts", "turn")

    def __init__(self) -> None:
        self.doing: Deferred[None] | None = None
        self.turn: Deferred[None] | None = None
        """Somebody waits until this answer is the next to leave."""
        self.done = False
        self.parts: list[bytes] = []
