"""Produce into 2011 topics: acks 0, 1 and all mean sent, appended and flushed. See docs/modern-port.md.

Keys, headers, timestamps and nulls have no place in a 2011 message; who sends them is told of once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafka2011.errors import Kafka2011Error
from since2011.era2011.events import NotKept
from since2011.era2011.unpacking import Found
from since2011.wire.batches import Batch
from since2011.wire.codec import Struct
from since2011.wire.compression import ZSTD
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused, refusal

if TYPE_CHECKING:
    from since2011.era2011.intake import Appended
    from since2011.server.handlers.call import Call
    from since2011.server.handlers.produce import Row
    from since2011.server.service import ModernBroker

ALL = -1
_ZSTD_FROM = 7


async def produce_2011(modern: ModernBroker, call: Call, rows: list[Row]) -> list[Deferred[None]]:
    """Append the batches of these partitions; what acks=all has to wait for."""
    waiting = []
    taken = [row for row in rows if _is_for_us(modern, call, row)]
    for row, found in zip(taken, await _unpacked(modern, call, [row.records for row in taken]), strict=True):
        try:
            appended = _append(modern, call, row, found)
        except Kafka2011Error as error:
            row.refuse(error)
            continue
        row.answer.base_offset, row.answer.log_start = appended.offset, appended.log_start
        if call.body.acks == ALL:
            waiting.append(_until_safe(modern, appended, call.body.timeout_ms, row.answer))
    return waiting


def _is_for_us(modern: ModernBroker, call: Call, row: Row) -> bool:
    try:
        row.partition = modern.local_partition(row.topic, row.answer.index, creator=call.caller.address)
    except Kafka2011Error as error:
        row.refuse(error)
        return False
    return True


async def _unpacked(modern: ModernBroker, call: Call, partitions: list[bytes]) -> list[Found]:
    """The batches of all partitions; if that takes long, in a thread, and this client's next requests wait."""
    found = modern.unpacker.quickly(partitions)
    if found is not None:
        return found
    budget = modern.broker.request_budget()
    work = modern.broker.unpacking.do(lambda: modern.unpacker.unpack(partitions, budget))
    return await call.caller.alone(sum(map(len, partitions)), work)


def _append(modern: ModernBroker, call: Call, row: Row, found: Found) -> Appended:
    if isinstance(found, Kafka2011Error):
        raise found
    if call.body.acks == ALL:
        modern.broker.visibility.check_copies()
    for one in found:
        _check(call, one.batch, len(found))
        _tell_what_is_not_kept(modern, call, row.topic, one.batch)
    return modern.intake.append(row.topic, row.partition, found)


def _check(call: Call, batch: Batch, n_batches: int) -> None:
    if call.body.transactional_id is not None or batch.transactional:
        raise Refused(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactions are not offered: a 2011 log has no markers"
        )
    if batch.control:
        raise Refused(ErrorCode.INVALID_RECORD, "a control batch from a client")
    if batch.codec == ZSTD and call.version < _ZSTD_FROM:
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce version {_ZSTD_FROM}")
    if batch.producer_id >= 0 and n_batches != 1:
        raise Refused(ErrorCode.INVALID_RECORD, "an idempotent producer sends one batch per partition and request")
    if batch.producer_id >= 0 and (batch.producer_epoch < 0 or batch.base_sequence < 0):
        raise Refused(ErrorCode.INVALID_RECORD, "a producer id without epoch or sequence")


def _tell_what_is_not_kept(modern: ModernBroker, call: Call, topic: str, batch: Batch) -> None:
    dropped = {"keys": batch.n_keys > 0, "headers": batch.n_headers > 0, "nulls": batch.n_nulls > 0}
    for what, present in dropped.items():
        if present and call.first_time(f"not kept: {what}"):
            modern.journal.emit(NotKept(client=call.client_id, **call.peer, topic=topic, what=what))


def _until_safe(modern: ModernBroker, appended: Appended, timeout_ms: int, answer: Struct) -> Deferred[None]:
    """Wait for both disks' worth of safety, the log's flush and the producer's note; ``answer`` says if it failed."""

    def failed(failure: Failure) -> None:
        failure.trap(Kafka2011Error)
        assert isinstance(failure.value, Kafka2011Error)
        answer.error, why = refusal(failure.value)
        answer.error_message = f"appended, but not known to be on disk: {why}"
        answer.base_offset = -1

    return modern.intake.when_safe(appended, max(timeout_ms, 1) / 1000).addErrback(failed)
