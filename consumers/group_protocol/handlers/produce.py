"""Produce: acks 0, 1 and all mean sent, appended and flushed. Spec: modern-group-protocol §1.6, §1.7, §14."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from consumers.group_protocol.batches import Batch, decode_batches
from consumers.group_protocol.codec import Struct
from consumers.group_protocol.compression import ZSTD
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.events import NotKept
from consumers.group_protocol.handlers.refusals import Refused, refusal
from kafka2011.broker.reactor import all_of
from kafka2011.errors import Kafka2011Error

if TYPE_CHECKING:
    from consumers.group_protocol.handlers.call import Call
    from consumers.group_protocol.intake import Appended
    from consumers.group_protocol.service import Modern

ALL, NONE, LEADER = -1, 0, 1
_ZSTD_FROM = 7


async def produce(modern: Modern, call: Call) -> Struct | None:
    """Append every partition's batches; answer when they are as safe as was asked."""
    acks, answers, waiting = call.body.acks, [], []
    for topic in call.body.topics:
        partitions = []
        for partition in topic.partitions:
            answer = Struct(index=partition.index)
            partitions.append(answer)
            try:
                appended = _append(modern, call, topic.name, partition.index, partition.records)
            except Kafka2011Error as error:
                answer.error, answer.error_message = refusal(error)
                continue
            answer.error, answer.base_offset, answer.log_start = ErrorCode.NONE, appended.offset, appended.log_start
            if acks == ALL:
                waiting.append(_until_safe(modern, appended, call.body.timeout_ms, answer))
        answers.append(Struct(name=topic.name, partitions=partitions))
    if acks == NONE:
        if any(partition.error for topic in answers for partition in topic.partitions):
            # The only way to tell a client that wants no answer; it then asks for metadata again.
            call.caller.drop("refused", "a produce with acks=0 could not be appended")
        return None
    if waiting:
        await all_of(waiting)
    return Struct(topics=answers)


def _append(modern: Modern, call: Call, topic: str, number: int, records: bytes | None) -> Appended:
    if call.body.acks not in (ALL, NONE, LEADER):
        raise Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={call.body.acks}; -1 (all), 0 and 1 mean something")
    partition = modern.local_partition(topic, number, create=True)
    batches = decode_batches(records or b"", modern.max_inflated)
    for batch in batches:
        _check(call, batch, len(batches))
        _tell_what_is_not_kept(modern, call, topic, batch)
    return modern.intake.append(topic, partition, batches)


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
    dropped = {"keys": batch.n_keys > 0, "headers": batch.n_headers > 0, "nulls": None in batch.values}
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
