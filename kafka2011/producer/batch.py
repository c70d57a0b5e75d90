"""From what the application hands over to the bytes of produce requests.

A *lane* is a topic's way to one partition of one broker. The application's messages are encoded once, when they are
handed over; from then on a batch is the triple (lane, bytes, number of messages), and batching is concatenation.

Paper: §3 (a set of messages in a single publish request), §4 (compression of a set).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from kafka2011.errors import MessageTooLarge
from kafka2011.types import BrokerAddress
from kafka2011.wire import DEFAULT_LIMITS, Codec, Message, MessageSet, ProduceRequest, encode_message, encode_set
from kafka2011.wire.compression import compress
from kafka2011.wire.message import LENGTH, MAGIC_1, crc32

Messages = MessageSet | Message | bytes | Sequence[bytes | Message]
"""What may be sent: a set, one message, one payload, or several of either."""

MAX_SET_SIZE = 1 << 20
"""A batch is closed at this many bytes, whatever its number of messages."""


class Lane:
    """One (topic, partition) on one broker, with the unchanging part of its requests made in advance."""

    __slots__ = ("address", "attempts", "head", "head_size", "keyed", "pack", "partition", "topic")

    def __init__(
        self, address: BrokerAddress, topic: str, partition: int, *, keyed: bool = False, attempts: int = 0
    ) -> None:
        self.address, self.topic, self.partition = address, topic, partition
        self.keyed = keyed
        self.attempts = attempts
        self.head = ProduceRequest(topic, partition, b"").encode()[4:-4]
        self.head_size = len(self.head) + 4
        self.pack = struct.Struct(f">i{len(self.head)}si").pack


Batch = tuple[Lane, bytes, int]
"""A lane, an encoded message set for it, and how many messages that is."""


def encode(messages: Messages) -> tuple[bytes, int]:
    """Encode what ``send`` was given; return the bytes of the set and the number of messages."""
    if isinstance(messages, bytes):
        return MAGIC_1.pack(len(messages) + 6, 1, 0, crc32(messages)) + messages, 1
    if isinstance(messages, MessageSet):
        return messages.encode(), len(messages)
    if isinstance(messages, Message):
        return encode_message(messages), 1
    if isinstance(messages, (list, tuple)):
        try:
            return encode_set(messages), len(messages)
        except TypeError:  # not all bytes: slower, and it says what is wrong
            if all(isinstance(message, (Message, bytes)) for message in messages):
                return MessageSet(messages).encode(), len(messages)
    raise TypeError(
        f"send() takes a MessageSet, a Message, bytes, or a list of those, not {messages!r:.60}; "
        "encode text first: 'text'.encode()"
    )


def payloads(messages: Messages) -> Iterable[bytes]:
    """The payloads of what ``send`` was given."""
    if isinstance(messages, bytes):
        return (messages,)
    items = (messages,) if isinstance(messages, Message) else messages
    return [item.payload if isinstance(item, Message) else item for item in items]


def check_sizes(messages: Messages, max_message_size: int) -> None:
    """Refuse a message the broker would drop (spec §3.5), naming the limit."""
    for payload in payloads(messages):
        if len(payload) > max_message_size:
            raise MessageTooLarge(
                f"a message of {len(payload)} bytes is over the limit max.message.size = {max_message_size}; nothing "
                "of this set was sent. Split it, or raise the limit at the broker and as max_message_size here"
            )


def split(messages: Messages, max_size: int) -> list[Sequence[bytes | Message]]:
    """Cut a set that is too large for one request into several, in order."""
    parts: list[Sequence[bytes | Message]] = []
    part: list[bytes | Message] = []
    size = 0
    for message in [messages] if isinstance(messages, (bytes, Message)) else messages:
        length = message.size if isinstance(message, Message) else len(message) + MAGIC_1.size
        if part and size + length > max_size:
            parts.append(part)
            part, size = [], 0
        part.append(message)
        size += length
    return [*parts, part]


def collate(batches: list[Batch], batch_size: int) -> list[Batch]:
    """Join what goes the same way until a batch has ``batch_size`` messages; order within a lane is kept.

    A set the application made is never cut, so a batch may be larger; no batch is joined beyond MAX_SET_SIZE.
    """
    if batch_size == 1:
        return batches
    full: list[Batch] = []
    filling: dict[Lane, tuple[list[bytes], int, int]] = {}
    for batch in batches:
        lane, data, n = batch
        parts, count, size = filling.pop(lane, ([], 0, 0))
        if parts and (count + n > batch_size or size + len(data) > MAX_SET_SIZE):
            full.append((lane, b"".join(parts), count))
            parts, count, size = [], 0, 0
        if n >= batch_size and not parts:
            full.append(batch)
            continue
        parts.append(data)
        filling[lane] = parts, count + n, size + len(data)
    full += [(lane, b"".join(parts), count) for lane, (parts, count, _) in filling.items()]
    return full


def compressed(batch: Batch, codec: Codec, max_message_size: int) -> Batch:
    """Put the set into one wrapper, unless the broker would refuse the wrapper: then send it as it is."""
    lane, data, n = batch
    if not data or len(data) > DEFAULT_LIMITS.max_inflated or n > DEFAULT_LIMITS.max_messages:
        return batch
    packed = compress(codec, data)
    too_dense = len(data) > max(DEFAULT_LIMITS.free_inflated, DEFAULT_LIMITS.max_ratio * len(packed))
    if too_dense or len(packed) > max_message_size:
        return batch
    return lane, encode_message(Message(packed, attributes=codec)), n


def requests(batches: Sequence[Batch]) -> bytes:
    """The produce requests for ``batches``, end to end."""
    parts = []
    for lane, data, _ in batches:
        size = len(data)
        parts.append(lane.pack(lane.head_size + size, lane.head, size))
        parts.append(data)
    return b"".join(parts)


def request_size(batch: Batch) -> int:
    """Bytes of the batch's request."""
    return LENGTH.size + batch[0].head_size + len(batch[1])
