"""What a member reads: fetchers of the 2011 port on one side, polls on the other.

Paper: §3.2 ("invoke a thread to pull data"), §3.1. The same ``consumers.fetcher`` serves Algorithm 1.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from consumers.fetcher import FetchedChunk, Fetcher
from kafka2011.errors import ConnectionFailed, Kafka2011Error
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress, BrokerPartition, TopicPartition

QUEUE_SIZE = 4 << 20


class Message(NamedTuple):
    """A message with the place it came from; ``next_offset`` is what a commit stores."""

    topic: str
    partition: int
    payload: bytes
    offset: int
    next_offset: int
    place: BrokerPartition
    """The partition in the registries' words: of which broker, and its number there."""


class Reading:
    """Owned partitions with their positions. Thread: one, except that fetchers deliver from theirs."""

    def __init__(self, brokers: Mapping[int, BrokerAddress], *, reset_policy: str, journal: Journal | None) -> None:
        self._brokers, self._policy, self._journal = brokers, reset_policy, journal
        self._fetchers: dict[int, Fetcher] = {}
        self._changed = threading.Condition()
        self._queue: deque[tuple[TopicPartition, FetchedChunk | Kafka2011Error]] = deque()
        self._queued = 0
        self._names: dict[tuple[int, TopicPartition], TopicPartition] = {}
        self._places: dict[TopicPartition, BrokerPartition] = {}
        self._positions: dict[TopicPartition, int | None] = {}
        self._paused: set[TopicPartition] = set()
        self._resting: set[int] = set()
        """Brokers whose fetcher waits until the queue has room again."""

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of each partition, where it is known."""
        with self._changed:
            return {partition: at for partition, at in self._positions.items() if at is not None}

    def start(self, partition: TopicPartition, place: BrokerPartition, offset: int | None) -> None:
        """Read from ``offset`` on; None = where the reset policy says."""
        local = TopicPartition(partition.topic, place.partition)
        with self._changed:
            self._names[place.broker_id, local] = partition
            self._places[partition] = place
            self._positions[partition] = offset
        fetcher = self._fetcher(place.broker_id)
        fetcher.add({local: offset})
        if place.broker_id in self._resting or partition in self._paused:
            fetcher.pause([local])

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these no longer; what is queued of them is dropped."""
        gone = set(partitions)
        for partition in gone:
            place = self._places.get(partition)
            if place is not None:
                self._fetchers[place.broker_id].remove([TopicPartition(partition.topic, place.partition)])
        with self._changed:
            for partition in gone:
                place = self._places.pop(partition, None)
                if place is not None:
                    self._names.pop((place.broker_id, TopicPartition(partition.topic, place.partition)), None)
                self._positions.pop(partition, None)
                self._paused.discard(partition)
            self._queue = deque(item for item in self._queue if item[0] not in gone)
            self._queued = sum(_size(item) for _, item in self._queue)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on elsewhere in a partition that is being read."""
        place, paused = self._places[partition], partition in self._paused
        self.stop([partition])
        if paused:
            self._paused.add(partition)
        self.start(partition, place, offset)

    def pause(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        """Deliver nothing of these for now, or go on."""
        for partition in partitions:
            place = self._places[partition]
            (self._paused.add if paused else self._paused.discard)(partition)
            if paused:
                self._fetchers[place.broker_id].pause([TopicPartition(partition.topic, place.partition)])
            elif place.broker_id not in self._resting:
                self._fetchers[place.broker_id].resume([TopicPartition(partition.topic, place.partition)])

    def take(self, at_most: int, wait_s: float) -> list[Message]:
        """Up to ``at_most`` messages; waits when there are none. Raises what a fetcher could not get over."""
        with self._changed:
            self._changed.wait_for(self._has_something, max(0.0, wait_s))
            messages: list[Message] = []
            waiting: list[tuple[TopicPartition, FetchedChunk | Kafka2011Error]] = []
            while self._queue and len(messages) < at_most:
                partition, item = self._queue.popleft()
                if partition in self._paused:
                    waiting.append((partition, item))
                elif isinstance(item, Kafka2011Error):
                    if not messages:
                        raise item
                    waiting.append((partition, item))
                    break
                else:
                    messages += self._open(partition, item, at_most - len(messages))
            self._queue.extendleft(reversed(waiting))
            rested = set(self._resting) if self._queued <= QUEUE_SIZE // 2 else set()
            self._resting -= rested
        for broker_id in rested:
            self._fetchers[broker_id].resume(self._active(broker_id))
        return messages

    def close(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.stop()

    def _has_something(self) -> bool:
        return any(partition not in self._paused for partition, _ in self._queue)

    def _open(self, partition: TopicPartition, chunk: FetchedChunk, at_most: int) -> list[Message]:
        messages = list(chunk.messages)
        some, rest = messages[:at_most], messages[at_most:]
        if rest:
            left = FetchedChunk(chunk.source, rest, some[-1].next_offset, chunk.next_offset, chunk.size)
            self._queue.appendleft((partition, left))
        else:
            self._queued -= chunk.size
        self._positions[partition] = some[-1].next_offset if rest else chunk.next_offset
        topic, number, place = partition.topic, partition.partition, self._places[partition]
        return [Message(topic, number, m.payload, m.offset, m.next_offset, place) for m in some]

    def _fetcher(self, broker_id: int) -> Fetcher:
        if broker_id not in self._fetchers:
            try:
                address = self._brokers[broker_id]
            except KeyError:
                raise ConnectionFailed(
                    f"no 2011 address is known for broker {broker_id}; name it in brokers when making the member"
                ) from None
            self._fetchers[broker_id] = Fetcher(
                address,
                deliver=lambda chunk: self._deliver(broker_id, chunk.source, chunk),
                on_error=lambda source, error: self._deliver(broker_id, source, error),
                reset_policy=self._policy,
                journal=self._journal,
            )
        return self._fetchers[broker_id]

    def _deliver(self, broker_id: int, source: TopicPartition, item: FetchedChunk | Kafka2011Error) -> None:
        with self._changed:
            partition = self._names.get((broker_id, source))
            if partition is None:
                return
            self._queue.append((partition, item))
            self._queued += _size(item)
            full = self._queued >= QUEUE_SIZE
            if full:
                self._resting.add(broker_id)
            self._changed.notify_all()
        if full:
            # Only this fetcher: it is the one whose lock this thread holds.
            self._fetchers[broker_id].pause(self._active(broker_id))

    def _active(self, broker_id: int) -> list[TopicPartition]:
        with self._changed:
            return [
                TopicPartition(partition.topic, place.partition)
                for partition, place in self._places.items()
                if place.broker_id == broker_id and partition not in self._paused
            ]


def _size(item: FetchedChunk | Kafka2011Error) -> int:
    return item.size if isinstance(item, FetchedChunk) else 0
