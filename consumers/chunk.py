"""Many messages at once: what ``stream.chunks()`` hands out.

    for chunk in stream.chunks():
        n += len(chunk)
        for payload in chunk.payloads():    # views of the bytes as they came, not copied
            handle(payload)

A chunk is one partition's part of one fetch, typically thousands of messages. It counts as consumed, as a whole, when
the next one is asked for. Paper: §3.1 ("each pull request ... typically hundreds of kilobytes"), §3.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized

from consumers.fetcher import FetchedChunk
from kafka2011.types import BrokerPartition
from kafka2011.wire import MessageAndOffset, ReadSet


class Chunk(Sized):
    """Messages of one partition, from ``offset`` up to ``next_offset``. Thread: any; it never changes."""

    __slots__ = ("messages", "next_offset", "offset", "partition", "topic")

    def __init__(self, fetched: FetchedChunk, partition: BrokerPartition) -> None:
        self.topic, self.partition = fetched.source.topic, partition
        self.offset, self.next_offset = fetched.offset, fetched.next_offset
        self.messages: ReadSet | list[MessageAndOffset] = fetched.messages
        """The same messages as the stream's own, one by one, if they are wanted."""

    def __len__(self) -> int:
        return len(self.messages)

    def payloads(self) -> Iterable[memoryview]:
        """The payloads in order, as views. A view holds the whole fetch: keep ``bytes(view)`` of the few to be kept."""
        if isinstance(self.messages, list):
            return [memoryview(message.payload) for message in self.messages]
        return [view for row in self.messages.rows for view in row.views()]

    def __repr__(self) -> str:
        return f"<{self.topic}/{self.partition} {self.offset}..{self.next_offset}: {len(self)} messages>"
