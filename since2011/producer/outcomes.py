"""What becomes of a batch: stored, sent again, split, or given up; and what that means to those after it. No I/O."""

from __future__ import annotations

from kafka2011.errors import Kafka2011Error
from since2011.client.backoff import Backoff
from since2011.client.metadata import Metadata
from since2011.producer.accumulator import Accumulator
from since2011.producer.batch import Batch, Outcome
from since2011.producer.configuration import ProducerConfig
from since2011.producer.errors import (
    MOVED,
    AbortableError,
    DeliveryTimedOut,
    FatalError,
    Kind,
    RetriableError,
    SendError,
    error_of,
    kind_of,
    known,
)
from since2011.producer.idempotence import Idempotence
from since2011.producer.transactions import Transactions
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import NO_SEQUENCE

E = ErrorCode
_MAYBE_STORED = (E.REQUEST_TIMED_OUT, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.UNKNOWN_SERVER_ERROR, E.CORRUPT_MESSAGE)
_ABORTED = "the transaction was aborted before the record was stored; begin another one and send it again"


class Outcomes:
    """Decides what becomes of batches. Under its producer's lock; time is an argument."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: Accumulator,
        metadata: Metadata,
        idempotence: Idempotence | None,
        transactions: Transactions | None,
        backoff: Backoff,
    ) -> None:
        self._config, self._accumulator, self._metadata = config, accumulator, metadata
        self._idempotence, self._transactions, self._backoff = idempotence, transactions, backoff
        self.settled: list[Batch] = []
        """In the order of their outcome; whoever runs the callbacks takes them away."""
        self.retries = self.splits = self.batches = self.records_stored = self.records_failed = 0

    def decide(self, batch: Batch, row: Struct | None, now: float) -> None:
        """A broker answered for this batch; None: not a word about it."""
        if batch.outcome is not None:
            return  # it was given up meanwhile
        if row is None:
            self._again_or_fail(batch, error_of(str(batch.queue), E.UNKNOWN_SERVER_ERROR, "no answer"), now, again=True)
            return
        code = known(row.error)
        if code in (E.NONE, E.DUPLICATE_SEQUENCE_NUMBER):
            self.stored(batch, row.base_offset if not code else -1, row.log_append_ms)
            return
        if code in MOVED:
            self._metadata.need_update()
        if code == E.MESSAGE_TOO_LARGE and len(batch) > 1:
            self._split(batch, now)
            return
        error = error_of(str(batch.queue), code, row.error_message)
        again: bool | None = None
        if self._idempotence is not None and batch.sequence != NO_SEQUENCE:
            again = self._idempotence.try_again(batch.queue, batch, code, row.log_start)
        self._again_or_fail(batch, error, now, again=kind_of(code) is Kind.RETRY if again is None else again)

    def unanswered(self, batch: Batch, error: Kafka2011Error, now: float) -> None:
        """The connection broke, or the time was over: the batch may be stored or not."""
        if batch.outcome is None:
            failure = RetriableError(f"{batch.queue}: {error}")
            self._again_or_fail(batch, failure, now, again=error.retriable)

    def stored(self, batch: Batch, offset: int, append_ms: int) -> None:
        """The batch is stored, as far as was asked for."""
        if batch.outcome is not None:
            return
        if self._idempotence is not None:
            self._idempotence.stored(batch.queue, batch, offset)
        self._settle(batch, Outcome(offset, append_ms))

    def expire(self, now: float) -> None:
        """Give up what was not settled within ``delivery.timeout.ms``."""
        for batch in self._accumulator.expired(now, self._config.delivery_timeout_s):
            sent = "sent, and not acknowledged" if batch.sent else "not sent"
            error = DeliveryTimedOut(
                f"{batch.queue}: {len(batch)} records were {sent} within delivery.timeout.ms "
                f"({self._config.delivery_timeout_s:g} s); are the brokers up? send them again"
            )
            self._give_up(batch, error, maybe_stored=batch.sent)

    def drop_if_failed(self, fatal: FatalError | None) -> None:
        """Settle what will not be sent any more, because the transaction ends or nothing goes."""
        if fatal is not None:
            self.fail_all(fatal)
        elif self._transactions is not None and self._transactions.dropping:
            reason = self._transactions.error or AbortableError(_ABORTED)
            if isinstance(reason, FatalError):
                self.fail_all(reason)
                return
            for queue in list(self._accumulator.active()):
                for batch in list(queue.batches):
                    self._give_up(batch, reason, maybe_stored=batch.sent)

    def fail_all(self, error: SendError) -> None:
        """Give up everything."""
        for batch in list(self._accumulator.incomplete):
            self._give_up(batch, error, maybe_stored=batch.sent)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _again_or_fail(self, batch: Batch, error: SendError, now: float, *, again: bool) -> None:
        dropping = self._transactions is not None and self._transactions.dropping
        if again and not dropping and batch.attempts < self._config.retries:
            batch.attempts += 1
            self.retries += 1
            self._enqueue(batch, now + self._backoff.after(batch.attempts))
        else:
            maybe = error.answered is None or error.answered in _MAYBE_STORED
            self._give_up(batch, error, maybe_stored=maybe)

    def _enqueue(self, batch: Batch, at: float) -> None:
        queue = batch.queue
        queue.retry_at = at
        if self._idempotence is not None and batch.sequence != NO_SEQUENCE:
            self._idempotence.enqueue_again(queue, batch)
            self._accumulator.activate(queue)
        else:
            self._accumulator.put_back(queue, batch)

    def _split(self, batch: Batch, now: float) -> None:
        self.splits += 1
        parts = batch.split(self._accumulator.batch_size)
        self._accumulator.replace(batch, parts)
        if self._idempotence is not None and batch.sequence != NO_SEQUENCE:
            self._idempotence.replace(batch.queue, batch, parts)
        for part in reversed(parts):
            self._enqueue(part, now)

    def _give_up(self, batch: Batch, error: SendError, *, maybe_stored: bool) -> None:
        self._accumulator.withdraw(batch)
        if self._idempotence is not None and batch.sequence != NO_SEQUENCE:
            if maybe_stored:
                self._idempotence.given_up(batch.queue, batch)
            else:
                self._idempotence.refused(batch.queue, batch)
            if self._transactions is not None:
                self._transactions.left_a_gap()
        self._settle(batch, Outcome(error=error))
        if self._transactions is not None:
            fatal = isinstance(error, FatalError)
            self._transactions.failed(error if fatal else AbortableError(str(error), error.answered))

    def _settle(self, batch: Batch, outcome: Outcome) -> None:
        batch.settle(outcome)
        self.batches += 1
        if outcome.error is None:
            self.records_stored += len(batch)
        else:
            self.records_failed += len(batch)
        self._accumulator.settled(batch)
        self.settled.append(batch)
