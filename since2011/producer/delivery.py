"""What ``send`` returns: a promise that the record is stored, or the reason why not.

A delivery knows its batch and its place in it; the batch learns its outcome once, for all its records. So a record
costs no lock and no event of its own, and waiting for one of a million is possible all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from since2011.producer.errors import SendError, TimedOut

if TYPE_CHECKING:
    from since2011.producer.batch import Batch


class RecordMetadata(NamedTuple):
    """Where a record is stored."""

    topic: str
    partition: int
    offset: int
    """-1 where the broker did not say: acks=0, or an answer that was lost and found to be a duplicate."""
    timestamp: int
    """The producer's, or the broker's where the topic has ``message.timestamp.type=LogAppendTime``."""


OnDelivery = Callable[[RecordMetadata | None, Exception | None], None]
"""Called with where the record is stored, or with why it is not; in order of sending within a partition."""


class Delivery:
    """The outcome of one ``send``. Thread: any."""

    __slots__ = ("batch", "position", "timestamp")

    def __init__(self, batch: Batch, position: int, timestamp: int) -> None:
        self.batch, self.position, self.timestamp = batch, position, timestamp

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self.batch.outcome is not None

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the outcome; raises the error, or TimedOut after ``timeout`` seconds (ask again later)."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self.metadata()

    def exception(self, timeout: float | None = None) -> SendError | None:
        """Wait, and return the error, None if the record is stored."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (outcome := self.batch.outcome) is None:
            batch = self.batch
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not batch.event().wait(left):
                where = f"{batch.queue.topic}-{batch.queue.partition}"
                raise TimedOut(f"the record for {where} is still under way after {timeout} s; wait on")
            # A batch that was too large for the broker is split: the record is in another one now.
        return outcome.error

    def metadata(self) -> RecordMetadata:
        """Where a stored record is."""
        batch = self.batch
        outcome = batch.outcome
        assert outcome is not None and outcome.error is None
        offset = outcome.base_offset + self.position if outcome.base_offset >= 0 else -1
        stamp = outcome.append_ms if outcome.append_ms >= 0 else self.timestamp
        return RecordMetadata(batch.queue.topic, batch.queue.partition, offset, stamp)

    def tell(self, callback: OnDelivery) -> None:
        """Call back with the outcome, which is known."""
        outcome = self.batch.outcome
        assert outcome is not None
        if outcome.error is None:
            callback(self.metadata(), None)
        else:
            callback(None, outcome.error)
