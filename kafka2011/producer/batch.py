"""From what the application hands over to the bytes of produce requests.

A *lane* is a topic's way to one partition of one broker. What the application sends waits in its lane as it came; it
is cut into batches and encoded when it is sent, many messages at a time, which is what makes a producer fast.

Paper: §3 (a set of messages in a single publish request), §4 (compression of a set).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafka2011.errors import MessageTooLarge
from kafka2011.types import BrokerAddress
from kafka2011.wire import DEFAULT_LIMITS, Codec, Message, MessageSet, ProduceRequest, encode_message, encode_set, walk
from kafka2011.wire.compression import compress

Item = bytes | Message
Messages = MessageSet | Message | bytes | Sequence[Item]
"""What may be sent: a set, one message, one payload, or several of either."""

MAX_SET_SIZE = 1 << 20
"""A batch of more bytes is halved, whatever its number of messages."""


class Lane:
    """One (topic, partition) on one broker, and what waits to go there."""

    __slots__ = ("address", "attempts", "head", "keyed", "partition", "pending", "topic")

    def __init__(
        self, address: BrokerAddress, topic: str, partition: int, *, keyed: bool = False, attempts: int = 0
    ) -> None:
        self.address, self.topic, self.partition = address, topic, partition
        self.keyed = keyed
        self.attempts = attempts
        self.pending: list[Item] = []
        self.head = ProduceRequest(topic, partition, b"").encode()[4:-4]

    def request(self, data: bytes) -> bytes:
        """The produce request for an encoded set: the same bytes as ``ProduceRequest(...).encode()``."""
        return b"".join((_I32(len(self.head) + 4 + len(data)), self.head, _I32(len(data)), data))


class PendingBatch(NamedTuple):
    """Messages on their way: a lane and what goes along it."""

    lane: Lane
    items: Sequence[Item]


class Batching(NamedTuple):
    """How messages become requests."""

    batch_size: int
    codec: Codec
    max_message_size: int


_I32 = struct.Struct(">i").pack


def measure(messages: Messages) -> tuple[Sequence[Item], int]:
    """The messages of what ``send`` was given, and the bytes of their payloads."""
    if isinstance(messages, (list, tuple)):
        try:
            return messages, len(b"".join(messages))  # the quickest way to check and measure many at once
        except TypeError:
            pass  # not all bytes: Messages among them, or a mistake
    items = [_payload_or_message(m) for m in ([messages] if isinstance(messages, (bytes, Message)) else messages)]
    return items, sum(len(item) if isinstance(item, bytes) else len(item.payload) for item in items)


def _payload_or_message(message: object) -> Item:
    """A payload alone, wherever it says it all."""
    if isinstance(message, Message):
        return message.payload if message.magic == 1 and not message.attributes else message
    if isinstance(message, bytes):
        return message
    raise TypeError(
        f"send() takes a MessageSet, a Message, bytes, or a list of those; {message!r:.60} is none of them. "
        "Encode text first: 'text'.encode()"
    )


def payload_of(item: Item) -> bytes:
    """The payload of a waiting message."""
    return item if isinstance(item, bytes) else item.payload


def check_sizes(items: Sequence[Item], max_message_size: int) -> None:
    """Refuse a message the broker would drop (docs/protocol.md), naming the limit."""
    largest = max(len(payload_of(item)) for item in items)
    if largest > max_message_size:
        raise MessageTooLarge(
            f"a message of {largest} bytes is over the limit max.message.size = {max_message_size}; nothing of this "
            "set was sent. Split it, or raise the limit at the broker and as max_message_size here"
        )


def sets(items: Sequence[Item], batching: Batching) -> Iterator[tuple[bytes, int]]:
    """Cut into batches and encode: message sets with their numbers of messages, in order."""
    for start in range(0, len(items), batching.batch_size):
        yield from _set(items[start : start + batching.batch_size], batching)


def _set(items: Sequence[Item], batching: Batching) -> Iterator[tuple[bytes, int]]:
    try:
        data = encode_set(items)  # type: ignore[arg-type]  # nearly always bytes only, and then this is all
    except TypeError:
        data = MessageSet(items).encode()
    if len(data) > MAX_SET_SIZE and len(items) > 1:
        middle = len(items) // 2
        yield from _set(items[:middle], batching)
        yield from _set(items[middle:], batching)
    elif batching.codec is Codec.NONE:
        yield data, len(items)
    else:
        yield _wrapped(data, batching), len(items)


def _wrapped(data: bytes, batching: Batching) -> bytes:
    """Put the set into one wrapper, unless the broker would refuse the wrapper: then leave it as it is."""
    packed = compress(batching.codec, data)
    too_dense = len(data) > max(DEFAULT_LIMITS.free_inflated, DEFAULT_LIMITS.max_ratio * len(packed))
    if too_dense or len(packed) > batching.max_message_size:
        return data
    return encode_message(Message(packed, attributes=batching.codec))


def requests(pending_batch: PendingBatch, batching: Batching) -> list[bytes]:
    """The produce requests of a pending batch, end to end, in a few pieces."""
    lane, items = pending_batch
    if batching.codec is Codec.NONE:
        try:
            # The payloads are mostly bytes only, and their sets small: then this is all.
            return [walk.encode(items, lane.head, batching.batch_size, MAX_SET_SIZE)]  # type: ignore[arg-type]
        except (TypeError, OverflowError):
            pass
    return [b"".join([lane.request(data) for data, _ in sets(items, batching)])]
