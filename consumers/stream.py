"""A message stream: a blocking iterator that never ends, over the partitions one consumer thread owns.

    for message in stream:            # waits for the next message, for ever
        handle(message.payload)       # also .topic .partition .offset .next_offset

**When a message counts as consumed.** Asking for the next message says that the one in hand is done. What is committed
is therefore always the offset of the message in hand, which is also the position after the one before it; a crash
while handling a message means that it is delivered again (at least once, §3.3).

Those who count in millions take many at a time (``chunk``); what holds for a message then holds for a chunk as a whole:

    for chunk in stream.chunks():
        handle(chunk.payloads())      # also len(chunk) .topic .partition .offset .next_offset

**Stopping.** A rebalance takes partitions away: queued messages are dropped unread, and the stream is given a moment
to finish the one in hand, so that nothing is delivered twice when members come and go in peace.

Paper: §3 ("the message stream iterator never terminates"), §3.3.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, ClassVar, cast

from consumers.algorithm1.steps import Owned
from consumers.chunk import Chunk
from consumers.fetcher import FetchedChunk
from kafka2011.errors import Kafka2011Error
from kafka2011.types import BrokerPartition, TopicPartition
from kafka2011.wire import MessageAndOffset, walk


class StreamMessage(MessageAndOffset):
    """A message with the place it came from: ``payload``, ``offset``, ``next_offset``, ``topic``, ``partition``.

    Topic and partition are attributes of a class made once for each partition, so a message costs no more than the
    four fields it has on the wire.
    """

    __slots__ = ()
    topic: ClassVar[str]
    partition: ClassVar[BrokerPartition]

    def __repr__(self) -> str:
        return f"<{self.topic}/{self.partition} @{self.offset} {self.payload[:40]!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.topic, self.partition, tuple(self))


def message_class(topic: str, partition: BrokerPartition) -> type[StreamMessage]:
    """The class of the messages of one partition."""
    made = type("StreamMessage", (StreamMessage,), {"__slots__": (), "topic": topic, "partition": partition})
    return cast(type[StreamMessage], made)


def _rebuild(topic: str, partition: BrokerPartition, fields: tuple[bytes, int, int, int]) -> StreamMessage:
    return message_class(topic, partition)(fields)


class Reader:
    """One owned partition inside a stream: how far the application got. Thread: under its stream's lock."""

    __slots__ = ("after", "heir", "owned", "position", "revoked")

    def __init__(self, owned: Owned, position: int | None) -> None:
        self.owned = owned
        self.position = position
        """The offset after the last finished message; None until it is known where to begin."""
        self.revoked = False
        self.heir: Reader | None = None
        """The same partition, owned anew while a message of this reader was still in the application's hand."""
        self.after: Any = None
        """For an heir: the message in hand, after which it goes on."""


class Stream(Iterator[StreamMessage]):
    """See the module. Thread: one application thread iterates; the rest is for the consumer's own threads."""

    def __init__(self, name: str, *, timeout_s: float | None = None, room: int = 4 << 20) -> None:
        self.name = name
        self.timeout_s = timeout_s
        self.on_room: Callable[[], None] = lambda: None
        """Called by the application's thread when a full queue has become half empty."""
        self._room = room
        self._readers: dict[Owned, Reader] = {}
        self._queue: deque[tuple[Reader, FetchedChunk | Kafka2011Error]] = deque()
        self._queued = 0
        self._full = False
        self._changed = threading.Condition()
        self._held = self._closed = False
        self._failure: BaseException | None = None
        self._hand = walk.Hand(self._next_messages, self._may_pass)
        """Gives out what comes, and knows what is in the application's hand: a message, or a chunk."""
        self._by_chunk = False
        self._done: Any = None
        self._current: Reader | None = None
        self._after = 0
        self._thread, self._leaver = 0, -1

    def __iter__(self) -> Iterator[StreamMessage]:
        """Messages for ever; ends only after ``timeout_s`` without one, or when the consumer is closed."""
        self._one_by_one()
        return iter(self._hand)

    def __next__(self) -> StreamMessage:
        """The next message; StopIteration after ``timeout_s`` without one. The stream can be asked again."""
        self._one_by_one()
        return cast(StreamMessage, next(self._hand))

    def chunks(self) -> Iterator[Chunk]:
        """Many messages at a time, without a copy; ends as the iteration over messages does.

        Asking for the next chunk says that all of the one in hand is done. What was left of a fetch when messages were
        last taken one by one comes first.
        """
        rest = [] if self._by_chunk else list(self._hand.rest or ())
        if rest:
            reader = self._current
            assert reader is not None, "what is left of a fetch is of the partition in hand"
            source = TopicPartition(reader.owned.topic, reader.owned.partition.partition)
            left = FetchedChunk(source, rest, rest[0].offset, self._after, 0)
            self._hand.rest = iter((Chunk(left, reader.owned.partition),))
        self._by_chunk = True
        return iter(self._hand)

    def _one_by_one(self) -> None:
        if self._by_chunk:
            self._by_chunk = False
            self._hand.rest = chain.from_iterable(chunk.messages for chunk in self._hand.rest or ())

    def finish(self) -> None:
        """Count the message in hand as done without asking for the next one, if it is in this thread's hand."""
        if self._thread == threading.get_ident():
            self._done = self._hand.in_hand

    # -- the application's side -----------------------------------------------------------------------------------

    def _may_pass(self) -> bool:
        """The gate is shut: wait while held; False if the partition of the message in hand was taken away."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._revoked())
            if not self._revoked():
                self._hand.gate = self._held
                return True
            reader, message = self._current, self._hand.in_hand
            assert reader is not None and message is not None
            if reader.heir is not None and reader.heir.after is message and not self._closed:
                # The heir was told that this message is out already: so it must go out.
                self._current, self._after, self._hand.rest = reader.heir, message.next_offset, None
                return True
            self._put_down(message.offset)
            return False

    def _revoked(self) -> bool:
        return self._closed or (self._current is not None and self._current.revoked)

    def _next_messages(self) -> Iterable[StreamMessage | Chunk] | None:
        """What is in hand, the last of its chunk, is done: take the next chunk. None = nothing came in time."""
        with self._changed:
            self._thread = threading.get_ident()
            if self._current is not None:
                self._put_down(self._after)
            while True:
                ready = self._changed.wait_for(lambda: (self._queue and not self._held) or self._closed, self.timeout_s)
                if self._failure is not None:
                    raise self._failure
                if not ready or self._closed:
                    return None
                reader, item = self._queue.popleft()
                if isinstance(item, Kafka2011Error):
                    raise item
                self._queued -= item.size
                if item.messages:
                    break
                reader.position = item.next_offset  # settled or reset: nothing to deliver, but go on from there
            self._current, self._after = reader, item.next_offset
            emptied = self._full and self._queued <= self._room // 2
            if emptied:
                self._full = False
        if emptied:
            self.on_room()
        if self._by_chunk:
            return (Chunk(item, reader.owned.partition),)
        return cast(Iterable[StreamMessage], item.messages)

    def _put_down(self, position: int) -> None:
        """Nothing is in hand any more; everything before ``position`` is finished."""
        reader = self._current
        assert reader is not None
        reader.position = position
        if reader.heir is not None:
            reader.heir.position = position
        self._current = self._hand.in_hand = self._done = None
        self._hand.rest = None
        self._changed.notify_all()

    # -- the consumer's side --------------------------------------------------------------------------------------

    def add(self, owned: Owned, offset: int | None) -> int | None:
        """Deliver a partition from ``offset`` on; return from where to fetch it.

        If its message at ``offset`` is in the application's hand right now (the partition was taken away and came
        back meanwhile), it is not delivered a second time.
        """
        with self._changed:
            reader = self._readers[owned] = Reader(owned, offset)
            before, message = self._current, self._hand.in_hand
            if before is None or message is None or not before.revoked or before.owned != owned:
                return offset
            if message.offset != offset or message.next_offset == offset:
                return offset
            before.heir, reader.after = reader, message
            after: int = message.next_offset
            return after

    def put(self, owned: Owned, item: FetchedChunk | Kafka2011Error) -> bool:
        """Queue a chunk or an error; True = that is enough for now, wait for ``on_room``."""
        reader = self._readers.get(owned)
        if reader is None:
            return False
        size = item.size if isinstance(item, FetchedChunk) else 0
        with self._changed:
            if reader.revoked or self._closed:
                return False
            self._queue.append((reader, item))
            self._queued += size
            self._changed.notify_all()
            self._full = self._full or self._queued >= self._room
            return self._full

    def revoke(self, partitions: Collection[Owned]) -> list[Reader]:
        """Let nothing more of these out; ``settle`` tells how far they got."""
        with self._changed:
            revoked = [self._readers.pop(owned) for owned in partitions if owned in self._readers]
            for reader in revoked:
                reader.revoked = True
            self._queue = deque((reader, item) for reader, item in self._queue if not reader.revoked)
            self._queued = sum(item.size for _, item in self._queue if isinstance(item, FetchedChunk))
            self._full = self._full and self._queued >= self._room
            self._hand.gate = True
            self._changed.notify_all()
            return revoked

    def settle(self, revoked: Collection[Reader], wait_s: float) -> dict[Owned, int]:
        """How far the application got in each.

        Waits up to ``wait_s`` for the message in hand; one that takes longer is delivered again by whoever reads next.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._current not in revoked or self._thread == self._leaver, wait_s)
            return self._positions(revoked)

    def positions(self) -> dict[Owned, int]:
        """How far the application got in each partition."""
        with self._changed:
            return self._positions(self._readers.values())

    def partitions(self) -> list[Owned]:
        """What this stream reads now."""
        with self._changed:
            return list(self._readers)

    def hold(self) -> None:
        """Deliver nothing until ``release``."""
        with self._changed:
            self._held = self._hand.gate = True

    def release(self) -> None:
        """Go on delivering."""
        with self._changed:
            self._held = False
            self._changed.notify_all()

    def leave(self) -> None:
        """The calling thread wants to leave: do not wait for it to finish the message in its hand."""
        with self._changed:
            self._leaver = threading.get_ident()
            self._changed.notify_all()

    def close(self, failure: BaseException | None = None) -> None:
        """End the iteration; with a ``failure`` by raising it."""
        with self._changed:
            self._closed = self._hand.gate = True
            self._failure = self._failure or failure
            self._queue.clear()
            self._changed.notify_all()

    def _positions(self, readers: Iterable[Reader]) -> dict[Owned, int]:
        found = {}
        for reader in readers:
            message, current = self._hand.in_hand, self._current
            if message is not None and current is not None and reader in (current, current.heir):
                found[reader.owned] = message.next_offset if message is self._done else message.offset
            elif reader.position is not None:
                found[reader.owned] = reader.position
        return found
