"""``__consumer_offsets`` as the coordinator writes it: an ordinary compacted topic whose leaders are the coordinators.

A commit, or a change of a group, is one batch in the partition of the group. It is answered when it is safe: where the
partition has replicas, when all in sync have it; where it has none, when it is on disk, for which the topic is created
with ``flush.messages=1``.

Paper: §3.2 keeps offsets in ZooKeeper. See docs/since-2011.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred, gatherResults
from twisted.python.failure import Failure

from consumers.group_protocol.coordinator.settings import InTransaction, LogPosition, Record
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import LogError
from since2011.log.validation import Prepared
from since2011.replication.leading import Leading
from since2011.replication.led import Led
from since2011.server.modern_topics import ModernTopics
from since2011.topics.internal import partition_of
from since2011.wire.record_batch import TRANSACTIONAL
from since2011.wire.records import Record as StoredRecord
from since2011.wire.records import encode_records

_SETTINGS = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": str(100 << 20)}


def settings(n_replicas: int) -> dict[str, str]:
    """What the topic is created with."""
    # Without replicas the disk is all there is: a commit that was answered survives a power cut.
    return _SETTINGS if n_replicas > 1 else _SETTINGS | {"flush.messages": "1"}


class NotLed(LogError):
    """Another broker leads this partition, or its offsets are not read yet."""


class OffsetsTopic:
    """The partitions this broker leads, as the coordinator's log. Thread: reactor."""

    def __init__(
        self, topics: ModernTopics, leading: Leading, *, timeout_s: float = 5.0, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        """``timeout_s`` is how long the replicas may take to have a commit."""
        self._topics, self._leading, self._timeout_s, self._clock = topics, leading, timeout_s, clock
        self._served: dict[int, Led] = {}
        self._storing: set[Deferred[None]] = set()
        self.durable: Callable[[LogPosition], None] = lambda position: None
        """Called when everything up to a position is as safe as the topic promises."""
        self.failed: Callable[[int, str], None] = lambda number, reason: None
        """Called when what waits on a partition is not known to get there."""

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
        """Whether the group's offsets are here, can be written, and nobody else can have newer ones (design D22)."""
        led = self._served.get(partition_of(group))
        return led is not None and (led.log is None or led.log.failed is None) and self._leading.may_answer(led)

    def append(
        self, group: str, records: Sequence[Record], transaction: InTransaction | None = None
    ) -> LogPosition | None:
        """Write one batch; None if nobody has to wait. Raises Kafka2011Error: nothing is kept then."""
        number = partition_of(group)
        led = self._served.get(number)
        if led is None:
            raise NotLed(f"the groups of partition {number} are not spoken for here")
        self._leading.check(led, everywhere=True)
        log = self._topics.log_for_writing(led)
        now_ms = self._clock.wall_ms()
        stored = [StoredRecord(n, now_ms, each.key, each.value) for n, each in enumerate(records)]
        prepared = _plain(stored) if transaction is None else _in_transaction(stored, transaction)
        appended = log.append(prepared, led.leader_epoch, check_sequences=False)
        end = appended.last_offset + 1
        storing = self._leading.stored(led, end, everywhere=True, timeout_s=self._timeout_s)
        if storing is None:
            return None
        waiting = storing.addCallbacks(
            self._stored, self._not_stored, callbackArgs=(LogPosition(number, end),), errbackArgs=(number,)
        )
        self._storing.add(waiting)
        waiting.addBoth(lambda _: self._storing.discard(waiting))
        return LogPosition(number, end)

    def settled(self) -> Deferred[list[None]]:
        """Fire when nothing that was written is waited for any more."""
        return gatherResults(list(self._storing))

    def _stored(self, _: object, position: LogPosition) -> None:
        self.durable(position)

    def _not_stored(self, failure: Failure, number: int) -> None:
        self.failed(number, failure.getErrorMessage())


def _plain(records: Sequence[StoredRecord]) -> Prepared:
    return Prepared(bytearray(encode_records(records)))


def _in_transaction(records: Sequence[StoredRecord], transaction: InTransaction) -> Prepared:
    batch = encode_records(
        records,
        attributes=TRANSACTIONAL,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        base_sequence=0,
    )
    return Prepared(bytearray(batch), transaction.must_be_verified, transaction.verified)
