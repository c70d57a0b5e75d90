"""Open the wrappers of a chunk, within limits.

Paper: §4 (a set of messages compressed as one). A broker of ours checks sets against the same limits when they are
published; what another broker kept, or a bug let through, must not fill the memory of a load.
"""

from __future__ import annotations

from collections.abc import Collection

from kafka2011.errors import WireError
from kafka2011.wire import DEFAULT_LIMITS
from kafka2011.wire.compression import decompress
from kafka2011.wire.message import Codec

MAX_OPENED = 64 << 20
"""Bytes out of wrappers that one chunk may hold; a chunk that would hold more ends before the next wrapper."""


class Opening:
    """What may still come out of wrappers: of this chunk, and of the entry at hand (``wire.Limits``). Thread: one."""

    def __init__(self, sealed: Collection[int], depth: int = 0) -> None:
        self.sealed, self.depth = sealed, depth
        self.opened = 0
        self.room = 0
        self.messages = 0

    @property
    def is_full(self) -> bool:
        """Tell whether the chunk should end before its next wrapper."""
        return self.depth == 0 and self.opened > MAX_OPENED

    def begin(self) -> None:
        """Turn to the next wrapper."""
        if self.depth == 0:
            self.room, self.messages = DEFAULT_LIMITS.max_inflated, DEFAULT_LIMITS.max_messages

    def open(self, payload: bytes, codec: int) -> bytes:
        """The set inside a wrapper; a wrapper in a wrapper in a wrapper is nobody's but an attacker's."""
        if codec not in (Codec.GZIP, Codec.SNAPPY):
            raise WireError(f"a message names codec {codec}, which does not exist")
        if self.depth >= DEFAULT_LIMITS.max_depth:
            raise WireError(f"wrappers are nested deeper than {DEFAULT_LIMITS.max_depth}")
        data = decompress(Codec(codec), payload, self.room)
        self.room -= len(data)
        self.opened += len(data)
        return data

    def count(self, n_messages: int) -> None:
        """Account for messages that came out."""
        self.messages -= n_messages
        if self.messages < 0:
            raise WireError(f"a wrapper holds more than {DEFAULT_LIMITS.max_messages} messages")
