"""A batch on its way: records of one partition, in the order in which they were given."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

from since2011.producer.delivery import Delivery, OnDelivery
from since2011.producer.errors import SendError
from since2011.producer.record import Row, upper_size
from since2011.wire.compression import compress
from since2011.wire.record_batch import (
    MAX_INT,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL,
    advance_sequence,
)
from since2011.wire.records import encode_rows


class Identity(NamedTuple):
    """Who a producer is to a broker: an id, and an epoch that rises when its sequences begin anew."""

    id: int = NO_PRODUCER_ID
    epoch: int = -1

    @property
    def valid(self) -> bool:
        return self.id != NO_PRODUCER_ID


NOBODY = Identity()


class Outcome(NamedTuple):
    """What became of a batch."""

    base_offset: int = -1
    append_ms: int = -1
    error: SendError | None = None


class Sequences:
    """What is known of the sequence numbers of one partition. ``Idempotence`` has the rules."""

    __slots__ = ("identity", "last_acked", "last_acked_offset", "next", "unresolved")

    def __init__(self) -> None:
        self.identity = NOBODY
        self.next = 0
        self.last_acked = NO_SEQUENCE
        self.last_acked_offset = -1
        self.unresolved = NO_SEQUENCE
        """The sequence after a batch that was given up without knowing whether it is stored; else -1."""


class PartitionQueue:
    """What waits for one partition: batches to be sent, in front the first; and those that are under way."""

    __slots__ = ("batches", "leader", "partition", "retry_at", "sequences", "topic", "under_way")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic, self.partition = topic, partition
        self.batches: deque[Batch] = deque()
        self.under_way: list[Batch] = []
        """Sent and not settled, by sequence; one that waits for its retry is here and among ``batches``."""
        self.leader = -1
        self.retry_at = 0.0
        self.sequences = Sequences()

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Batch:
    """Records of one partition that travel together. Under its producer's lock, until it is sent."""

    __slots__ = (
        "_event",
        "_over",
        "attempts",
        "base_timestamp",
        "callbacks",
        "closed",
        "created",
        "deliveries",
        "identity",
        "outcome",
        "queue",
        "reserved",
        "rows",
        "sent",
        "sequence",
        "sequence_reset",
        "size",
    )

    def __init__(self, queue: PartitionQueue, created: float, reserved: int) -> None:
        self.queue, self.created, self.reserved = queue, created, reserved
        self.rows: list[Row] = []
        self.deliveries: list[Delivery] = []
        self.callbacks: list[tuple[Delivery, OnDelivery]] = []
        self.size = 0
        self.closed = False
        """Nothing is added any more: it is full, or was sent."""
        self.sent = False
        """It may have reached a broker."""
        self.attempts = 0
        self.identity = NOBODY
        self.sequence = NO_SEQUENCE
        self.sequence_reset = False
        self.outcome: Outcome | None = None
        self._event: threading.Event | None = None
        self._over = False

    def __len__(self) -> int:
        return len(self.deliveries)

    @property
    def last_sequence(self) -> int:
        return advance_sequence(self.sequence, len(self.deliveries) - 1)

    def event(self) -> threading.Event:
        """Set when the outcome is known and was called back, or the batch was split. Thread: any."""
        event = self._event
        if event is None:
            event = self._event = threading.Event()
            if self._over:  # looked at after the event is there: ``over`` does it the other way round
                event.set()
        return event

    def settle(self, outcome: Outcome) -> None:
        """Decide the outcome."""
        assert self.outcome is None
        self.outcome = outcome
        self.rows = []

    def over(self) -> None:
        """Let those go on who wait for this batch."""
        self._over = True
        if self._event is not None:
            self._event.set()

    def encode(self, codec: int, *, transactional: bool) -> bytes:
        """The bytes of the batch as they travel."""
        return encode_rows(
            self.rows,
            attributes=codec | (TRANSACTIONAL if transactional else 0),
            producer_id=self.identity.id,
            producer_epoch=self.identity.epoch,
            base_sequence=self.sequence,
            deflate=compress,
        )

    def split(self, limit: int) -> list[Batch]:
        """The same records in at least two batches, of at most ``limit`` bytes where records are that small."""
        parts: list[Batch] = []
        callbacks = dict(self.callbacks)
        part: Batch | None = None
        half = (len(self.rows) + 1) // 2
        for row, delivery in zip(self.rows, self.deliveries, strict=True):
            size = upper_size(row[1], row[2], row[3])
            if part is None or part.size + size > limit or len(part.rows) >= half:
                part = Batch(self.queue, self.created, 0)
                part.closed, part.attempts, part.identity = True, self.attempts, self.identity
                if self.sequence != NO_SEQUENCE:
                    part.sequence = (self.sequence + sum(map(len, parts))) & MAX_INT
                part.sequence_reset = self.sequence_reset
                parts.append(part)
            if delivery in callbacks:
                part.callbacks.append((delivery, callbacks[delivery]))
            delivery.batch, delivery.position = part, len(part.rows)
            part.rows.append(row)
            part.deliveries.append(delivery)
            part.size += size
        self.over()
        return parts
