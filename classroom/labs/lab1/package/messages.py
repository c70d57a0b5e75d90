"""Lab 1: messages as bytes. Fill the holes; the page README.md says what each function has to do."""

from __future__ import annotations


class Damaged(Exception):
    """The bytes at ``offset`` are not a message. ``Damaged(offset)`` is raised by decode_set."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def encode(payload: bytes) -> bytes:
    """One message of magic 0: size, magic, CRC, payload."""
    raise NotImplementedError("encode: write the four fields one after the other")


def encode_set(payloads: list[bytes]) -> bytes:
    """A message set: messages end to end, nothing in between."""
    raise NotImplementedError("encode_set: join what encode gives")


def intact(data: bytes) -> int:
    """How many bytes from the front are whole, undamaged messages."""
    raise NotImplementedError("intact: walk until something is wrong or missing")


def decode_set(data: bytes, start: int = 0) -> list[tuple[bytes, int]]:
    """Each payload with the offset of the message after it; ``start`` is the offset of the first byte of ``data``."""
    raise NotImplementedError("decode_set: walk, check, compute the next offset")
