"""A Produce request's batches as 2011 bytes: at once where that is quick, else in a thread.

All batches of a request spend from one budget of inflated bytes and records, and each is turned into 2011 bytes before
the next one is opened: what a request costs is bounded by what it may inflate to, not by how well it compresses.

See docs/modern-port.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka2011.errors import Kafka2011Error, SetTooLarge
from kafka2011.wire import Budget
from since2011.era2011.bridge import Stored, to_messages
from since2011.wire.batches import Batch, each_batch

QUICK_BYTES = 64 << 10
QUICK_INFLATED = 256 << 10
QUICK_RECORDS = 4_000
"""What a request may be and hold to be unpacked at once: a few milliseconds' work."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A batch: what it says of itself (its records are let go), and its 2011 bytes."""

    batch: Batch
    stored: Stored


Found = list[Unpacked] | Kafka2011Error
"""The batches of one partition, or why they cannot be taken."""


@dataclass(frozen=True, slots=True)
class Unpacker:
    """Unpack requests. Thread: any."""

    max_batch: int
    """What one batch may inflate to."""
    max_payload: int

    def quickly(self, partitions: Sequence[bytes]) -> list[Found] | None:
        """The batches of every partition, or None if that takes long."""
        if sum(map(len, partitions)) > QUICK_BYTES:
            return None
        found = self.unpack(partitions, Budget(QUICK_INFLATED, QUICK_RECORDS))
        return None if any(isinstance(one, SetTooLarge) for one in found) else found

    def unpack(self, partitions: Sequence[bytes], budget: Budget) -> list[Found]:
        """The batches of every partition, for as long as the ``budget`` lasts."""
        return [self._partition(data, budget) for data in partitions]

    def _partition(self, data: bytes, budget: Budget) -> Found:
        unpacked = []
        try:
            for batch in each_batch(data, self.max_batch, budget):
                unpacked.append(Unpacked(batch.without_values(), to_messages(batch, self.max_payload)))
        except Kafka2011Error as error:
            # Its traceback would keep alive everything that was inflated so far.
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)
        return unpacked
