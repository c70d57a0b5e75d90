"""Message sets: entries end to end, the same bytes in a request, in a log file and in an answer.

Paper: §3 (MessageSet in the sample producer), §3.3 (CRC). Making a set, and checking one before it is appended;
``reading`` is the consumer's side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafka2011.wire import walk
from kafka2011.wire.budget import Budget
from kafka2011.wire.compression import compress
from kafka2011.wire.entry import DEFAULT_LIMITS, Limits, Opener, read_entry
from kafka2011.wire.message import CODEC_MASK, Codec, Message, encode_message
from kafka2011.wire.reading import decode_set


class MessageSet:
    """A set of messages to publish, as in the paper's sample: ``MessageSet(Message(b"..."))`` (§3)."""

    __slots__ = ("messages",)

    def __init__(self, messages: Message | bytes | Iterable[Message | bytes] = ()) -> None:
        items = (messages,) if isinstance(messages, (Message, bytes, bytearray)) else messages
        self.messages = tuple(m if isinstance(m, Message) else Message(bytes(m)) for m in items)

    @classmethod
    def decode(cls, data: bytes, *, deep: bool = True) -> MessageSet:
        """Read a set from its bytes."""
        return cls([Message(m.payload, m.magic) for m in decode_set(data, deep=deep)])

    def encode(self, codec: Codec = Codec.NONE) -> bytes:
        """The set's bytes; with a codec, one wrapper message around them (§4)."""
        return _wrap(b"".join(map(encode_message, self.messages)), codec)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageSet) and self.messages == other.messages

    def __hash__(self) -> int:
        return hash(self.messages)

    def __repr__(self) -> str:
        return f"MessageSet({list(self.messages)!r})"


def encode_set(payloads: Iterable[bytes], *, codec: Codec = Codec.NONE, magic: int = 1) -> bytes:
    """Encode many payloads at once; an empty batch is zero bytes."""
    if magic != 1:
        return _wrap(b"".join([encode_message(Message(p, magic)) for p in payloads]), codec)
    return _wrap(walk.encode(payloads, b"", 0, 0), codec)


def _wrap(data: bytes, codec: Codec) -> bytes:
    if codec is Codec.NONE or not data:
        return data
    return encode_message(Message(compress(codec, data), attributes=codec))


class SetSummary(NamedTuple):
    """What a validated set holds: its valid bytes, messages (inner ones counted), entries, largest outer payload."""

    size: int
    n_messages: int
    n_entries: int
    largest_payload: int


def validate_set(
    data: bytes, *, deep: bool = True, limits: Limits = DEFAULT_LIMITS, budget: Budget | None = None
) -> SetSummary:
    """Check a set before it is appended: every CRC, wrappers opened, a partial tail left out of ``size`` (docs/log.md).

    ``budget`` is what the request it came with may still inflate to and hold. Raises InvalidMessageSize or
    InvalidMessage; nothing of such a set may be written.
    """
    return _validate(data, Opener(limits, budget), 0, deep)


def _validate(data: bytes, opener: Opener, depth: int, deep: bool = True) -> SetSummary:
    n_messages = n_entries = largest = 0
    pos, end = 0, len(data)
    while pos < end:
        after, count, largest_here = walk.check(data, pos, not deep)
        n_entries += count
        largest = max(largest, largest_here)
        if after == end:
            pos = after
            break
        # A wrapper, the partial tail, or something wrong.
        entry = read_entry(data, after)
        pos = after
        if entry is None:
            break
        if deep and entry.attributes & CODEC_MASK:
            n_messages += _validate(opener.open(entry, depth), opener, depth + 1).n_messages - 1
        largest = max(largest, len(entry.payload))
        n_entries += 1
        pos += entry.size
    opener.budget.count(n_entries)
    return SetSummary(pos, n_messages + n_entries, n_entries, largest)
