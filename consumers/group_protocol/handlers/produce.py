"""Produce: acks 0, 1 and all mean sent, appended and flushed. Spec: modern-group-protocol §1.6, §1.7, §14."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from consumers.group_protocol.batches import Batch
from consumers.group_protocol.codec import Struct
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.events import NotKept
from consumers.group_protocol.handlers.refusals import Refused, refusal
from consumers.group_protocol.unpacking import Found
from kafka2011.broker.reactor import all_of
from kafka2011.errors import Kafka2011Error
from since2011.wire.compression import ZSTD

if TYPE_CHECKING:
    from consumers.group_protocol.handlers.call import Call
    from consumers.group_protocol.intake import Appended
    from consumers.group_protocol.service import Modern

ALL, NONE, LEADER = -1, 0, 1
_ZSTD_FROM = 7


@dataclass(slots=True)
class _Row:
    """One partition of the request."""

    topic: str
    records: bytes
    answer: Struct
    partition: int = -1
    """This broker's own number of it."""

    def refuse(self, error: Kafka2011Error) -> None:
        self.answer.error, self.answer.error_message = refusal(error)


async def produce(modern: Modern, call: Call) -> Struct | None:
    """Append every partition's batches; answer when they are as safe as was asked."""
    acks, waiting = call.body.acks, []
    answers = [
        Struct(name=topic.name, partitions=[Struct(index=one.index, error=ErrorCode.NONE) for one in topic.partitions])
        for topic in call.body.topics
    ]
    rows = [
        _Row(topic.name, one.records or b"", answer)
        for topic, told in zip(call.body.topics, answers, strict=True)
        for one, answer in zip(topic.partitions, told.partitions, strict=True)
    ]
    taken = [row for row in rows if _is_for_us(modern, call, row)]
    for row, found in zip(taken, await _unpacked(modern, call, [row.records for row in taken]), strict=True):
        try:
            appended = _append(modern, call, row, found)
        except Kafka2011Error as error:
            row.refuse(error)
            continue
        row.answer.base_offset, row.answer.log_start = appended.offset, appended.log_start
        if acks == ALL:
            waiting.append(_until_safe(modern, appended, call.body.timeout_ms, row.answer))
    if acks == NONE:
        if any(row.answer.error for row in rows):
            # The only way to tell a client that wants no answer; it then asks for metadata again.
            call.caller.drop("refused", "a produce with acks=0 could not be appended")
        return None
    if waiting:
        await all_of(waiting)
    return Struct(topics=answers)


def _is_for_us(modern: Modern, call: Call, row: _Row) -> bool:
    try:
        if call.body.acks not in (ALL, NONE, LEADER):
            raise Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={call.body.acks}; -1 (all), 0 and 1 mean something")
        row.partition = modern.local_partition(row.topic, row.answer.index, creator=call.caller.address)
    except Kafka2011Error as error:
        row.refuse(error)
        return False
    return True


async def _unpacked(modern: Modern, call: Call, partitions: list[bytes]) -> list[Found]:
    """The batches of all partitions; if that takes long, in a thread, and this client's next requests wait."""
    found = modern.unpacker.quickly(partitions)
    if found is not None:
        return found
    budget = modern.broker.request_budget()
    work = modern.broker.unpacking.do(lambda: modern.unpacker.unpack(partitions, budget))
    return await call.caller.alone(sum(map(len, partitions)), work)


def _append(modern: Modern, call: Call, row: _Row, found: Found) -> Appended:
    if isinstance(found, Kafka2011Error):
        raise found
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


def _tell_what_is_not_kept(modern: Modern, call: Call, topic: str, batch: Batch) -> None:
    dropped = {"keys": batch.n_keys > 0, "headers": batch.n_headers > 0, "nulls": batch.n_nulls > 0}
    for what, present in dropped.items():
        if present and call.first_time(f"not kept: {what}"):
            modern.journal.emit(NotKept(client=call.client_id, **call.peer, topic=topic, what=what))


def _until_safe(modern: Modern, appended: Appended, timeout_ms: int, answer: Struct) -> Deferred[None]:
    """Wait for both disks' worth of safety, the log's flush and the producer's note; ``answer`` says if it failed."""

    def failed(failure: Failure) -> None:
        failure.trap(Kafka2011Error)
        assert isinstance(failure.value, Kafka2011Error)
        answer.error, why = refusal(failure.value)
        answer.error_message = f"appended, but not known to be on disk: {why}"
        answer.base_offset = -1

    return modern.intake.when_safe(appended, max(timeout_ms, 1) / 1000).addErrback(failed)
