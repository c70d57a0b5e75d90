"""What one request may inflate to, and how many messages it may hold, whatever it is made of.

Compression makes small requests large: a limit per wrapper alone lets a request of many wrappers take all memory and
minutes of work. The limit that counts is therefore the request's, and it is spent before anything is set aside.
"""

from __future__ import annotations

from kafka2011.errors import SetTooLarge


class Budget:
    """Bytes and messages left. Thread: one at a time."""

    __slots__ = ("_most", "inflated", "messages")

    def __init__(self, inflated: int, messages: int) -> None:
        self.inflated, self.messages = inflated, messages
        self._most = messages

    def spend(self, inflated: int) -> None:
        """Account for bytes that came out of a compressed set."""
        self.inflated -= inflated

    def count(self, n_messages: int) -> None:
        """Account for messages; raise SetTooLarge if there are too many."""
        self.messages -= n_messages
        if self.messages < 0:
            raise SetTooLarge(f"more than {self._most} messages at once; send smaller sets")
