"""``__consumer_offsets`` as the coordinator writes it: an ordinary compacted topic whose leaders are the coordinators.

A commit, or a change of a group, is one batch in the partition of the group. It is answered when the log says that it
is safe: with the topic's ``flush.messages=1``, which it is created with, when it is on disk.

Paper: §3.2 keeps offsets in ZooKeeper. See docs/since-2011.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred, gatherResults
from twisted.python.failure import Failure

from consumers.group_protocol.coordinator.settings import LogPosition, Record
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import LogError
from since2011.log.validation import Prepared
from since2011.replication.flushes import Flushes
from since2011.server.modern_topics import Led, ModernTopics
from since2011.topics.internal import partition_of
from since2011.wire.records import Record as StoredRecord
from since2011.wire.records import encode_records

SETTINGS = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": str(100 << 20),
    # Without replicas the disk is all there is: a commit that was answered survives a power cut.
    "flush.messages": "1",
}
"""What the topic is created with."""


class NotLed(LogError):
    """Another broker leads this partition, or its offsets are not read yet."""


class OffsetsTopic:
    """The partitions this broker leads, as the coordinator's log. Thread: reactor."""

    def __init__(
        self, topics: ModernTopics, flushes: Flushes, seen: Callable[[Led], None], *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        """``seen`` is called when readers of the topic can see more of it."""
        self._topics, self._flushes, self._seen, self._clock = topics, flushes, seen, clock
        self._served: dict[int, Led] = {}
        self._flushing: set[Deferred[None]] = set()
        self.durable: Callable[[LogPosition], None] = lambda position: None
        """Called when everything up to a position is on disk."""
        self.failed: Callable[[int, str], None] = lambda number, reason: None
        """Called when what waits on a partition will not get there."""

    def serve(self, number: int, led: Led) -> None:
        """From now on the groups of this partition are spoken for."""
        self._served[number] = led

    def leave(self, number: int) -> None:
        """Another broker speaks for them."""
        self._served.pop(number, None)

    @property
    def served(self) -> frozenset[int]:
        """The partitions whose groups are spoken for here."""
        return frozenset(self._served)

    # The coordinator's log

    def is_available(self, group: str) -> bool:
        """Whether the group's offsets are here, and can be written."""
        led = self._served.get(partition_of(group))
        return led is not None and (led.log is None or led.log.failed is None)

    def append(self, group: str, records: Sequence[Record]) -> LogPosition | None:
        """Write one batch; None if nobody has to wait for the disk. Raises LogError: nothing is kept then."""
        number = partition_of(group)
        led = self._served.get(number)
        if led is None:
            raise NotLed(f"the groups of partition {number} are not spoken for here")
        log = self._topics.log_for_writing(led)
        now_ms = self._clock.wall_ms()
        batch = encode_records([StoredRecord(n, now_ms, each.key, each.value) for n, each in enumerate(records)])
        appended = log.append(Prepared(bytearray(batch)), led.leader_epoch, check_sequences=False)
        end = appended.last_offset + 1
        if not log.should_flush():
            self._reached(led, end)
            return None
        flushing = self._flushes.flushed(log, end)
        waiting = flushing.addCallbacks(
            self._on_disk, self._not_on_disk, callbackArgs=(number, led), errbackArgs=(number,)
        )
        self._flushing.add(waiting)
        waiting.addBoth(lambda _: self._flushing.discard(waiting))
        return LogPosition(number, end)

    def settled(self) -> Deferred[list[None]]:
        """Fire when no flush is under way any more."""
        return gatherResults(list(self._flushing))

    def _reached(self, led: Led, end: int) -> None:
        if led.log is not None and led.log.raise_high_watermark(end):
            self._seen(led)

    def _on_disk(self, upto: int, number: int, led: Led) -> None:
        self._reached(led, upto)
        self.durable(LogPosition(number, upto))

    def _not_on_disk(self, failure: Failure, number: int) -> None:
        self.failed(number, failure.getErrorMessage())
