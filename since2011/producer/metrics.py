"""What a producer has done and what it holds, as numbers."""

from __future__ import annotations

from typing import NamedTuple

from since2011.producer.accumulator import Accumulator
from since2011.producer.outcomes import Outcomes
from since2011.producer.sender import Sender


class Metrics(NamedTuple):
    """Numbers since the producer was made, and of this moment; Kafka's own names where it has them."""

    record_send_total: int
    """Records that are stored, as far as was asked for."""
    record_error_total: int
    record_retry_total: int
    """Batches that were sent again."""
    batch_split_total: int
    batch_total: int
    request_total: int
    buffer_total_bytes: int
    buffer_available_bytes: int
    waiting_threads: int
    batches_under_way: int
    callback_errors: int

    @classmethod
    def of(cls, accumulator: Accumulator, outcomes: Outcomes, sender: Sender) -> Metrics:
        """Under the producer's lock."""
        return cls(
            outcomes.records_stored,
            outcomes.records_failed,
            outcomes.retries,
            outcomes.splits,
            outcomes.batches,
            sender.requests,
            accumulator.memory,
            accumulator.free,
            accumulator.waiting,
            len(accumulator.incomplete),
            sender.callback_errors,
        )
