"""A leader asks the coordinator before it takes the first batch of a transaction (KIP-890, part 1).

Without it a batch that was long on its way can come behind the marker that ended its transaction, and begin one that
nobody will ever end: readers of committed records would wait for it for ever.

    asked once       per transaction and partition; while it is open here no more
    not part of it   TRANSACTION_ABORTABLE, for clients that do not know that code INVALID_TXN_STATE
    cannot say now   NOT_ENOUGH_REPLICAS: what every client tries again without asking for metadata
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kafka2011.errors import Kafka2011Error
from kafka2011.types import TopicPartition
from since2011.log.producer_state import Verification
from since2011.replication.led import Led
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import ATTRIBUTES_AT, TRANSACTIONAL, BatchHeader, read_header
from since2011.wire.refusals import Refused

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

_ABORTABLE_FROM = 11
"""Produce from here on knows TRANSACTION_ABORTABLE."""
NOT_NOW = frozenset({
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verified:
    """The coordinator's word; ``ticket`` None: a transaction is open here already."""

    ticket: Verification | None


class Row(Protocol):
    """One partition of a produce."""

    topic: str
    records: bytes
    answer: Struct
    led: Led | None
    verified: Verified | None

    def refuse(self, error: Kafka2011Error) -> None:
        """Answer it with this."""


async def check_transactions(modern: ModernBroker, call: Call, rows: Sequence[Row]) -> None:
    """Let the coordinator say which of these batches of transactions may be appended; refuse the others."""
    found = [(row, header) for row in rows if (header := _of_transaction(row)) is not None]
    if not found:
        return
    _, first = found[0]
    if any((each.producer_id, each.producer_epoch) != (first.producer_id, first.producer_epoch) for _, each in found):
        _refuse_all(found, ErrorCode.INVALID_PRODUCER_ID_MAPPING, "more than one producer in one transaction")
        return
    verifier = modern.verifier
    if verifier is None or not verifier.verifies:
        return
    asked: dict[TopicPartition, Row] = {}
    for row, header in found:
        assert row.led is not None
        row.verified = Verified(begin(modern, row.led, header.producer_id, header.producer_epoch, header.base_sequence))
        if row.verified.ticket is not None:
            asked[row.led.key] = row
    if asked:
        said = await verifier.verify(call.body.transactional_id, first.producer_id, first.producer_epoch, asked.keys())
        for partition, row in asked.items():
            error = told(said[partition], abortable=call.version >= _ABORTABLE_FROM)
            if error in NOT_NOW:
                error = ErrorCode.NOT_ENOUGH_REPLICAS
            if error:
                sentence = f"{partition} and the transaction of {call.body.transactional_id!r}: {said[partition].name}"
                row.refuse(Refused(error, sentence))


def _of_transaction(row: Row) -> BatchHeader | None:
    if not row.records[ATTRIBUTES_AT + 1] & TRANSACTIONAL:
        return None
    try:
        return read_header(row.records)
    except Kafka2011Error as error:
        row.refuse(error)
        return None


def begin(modern: ModernBroker, led: Led, producer_id: int, epoch: int, sequence: int) -> Verification | None:
    """What the batch is to be appended with once the coordinator has agreed; None: it need not be asked."""
    log = modern.topics.log_for_writing(led)
    with log.lock:
        if log.producers.is_open(producer_id):
            return None
        return log.producers.begin_verification(producer_id, epoch, sequence, log.clock.wall_ms())


def told(error: ErrorCode, *, abortable: bool) -> ErrorCode:
    """The coordinator's word as a producer is told."""
    if error == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error == ErrorCode.TRANSACTION_ABORTABLE and not abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error


def _refuse_all(found: list[tuple[Row, BatchHeader]], error: ErrorCode, sentence: str) -> None:
    for row, _ in found:
        row.refuse(Refused(error, sentence))
