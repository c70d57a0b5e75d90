"""Produce: store batches as they came, and answer when they are as safe as was asked.

Behavior:
- Partitions of one request succeed and fail separately; the answer leaves when all are done.
- acks 0 has no answer; the connection is closed if anything failed. acks 1 is answered after the append, acks all when
  every replica in sync has it, within the request's own time (``since2011.replication.leading``); with one replica
  both mean the same. Where the topic's ``flush.messages`` or ``flush.ms`` says that it is time, what was appended is
  seen and acknowledged only once it is on disk.
- A duplicate of an idempotent producer is answered with the offset of the first time.
- The order of checks is real Kafka's: transactions (whole request), topic and partition, form of the batch, one
  producer for the request, the coordinator's word on transactions, acks, internal topics, then what the log checks.
- The first batch of a transaction is taken only if the coordinator says that the partition is part of it (KIP-890).
- Topics of 2011 go their own way (``since2011.era2011.produce``); they hold no transactions.

Version notes:
- 0 to 2 are not offered: they carry message formats older than the record batch.
- 5 log start offset; 7 zstd; 8 record errors and a message; 9 flexible; 10 leader hints, which are left out; 11 the
  client knows TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from kafka2011.broker.reactor import all_of
from kafka2011.errors import InvalidMessageSize, Kafka2011Error, LogFailed
from since2011.era2011.produce import produce_2011
from since2011.log.validation import InvalidRecord, Prepared
from since2011.replication.led import Led
from since2011.server.events import TransactionRefused
from since2011.server.verification import Verified, check_transactions
from since2011.topics.internal import INTERNAL_TOPICS
from since2011.wire.codec import Struct
from since2011.wire.compression import ZSTD
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import CODEC_MASK, LOG_OVERHEAD, MAGIC, TRANSACTIONAL
from since2011.wire.refusals import Refused, refusal

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

ALL, NONE, LEADER = -1, 0, 1
_ZSTD_FROM = 7
_ADMIN_CLIENT = "__admin_client"
_MAGIC_AT, _ATTRIBUTES_AT, _SMALLEST_LENGTH = 16, 22, 14
_QUICK_BYTES = 64 << 10
"""A batch that must be opened is opened in a thread if it is larger than this, or compressed."""


@dataclass(slots=True)
class Row:
    """One partition of the request."""

    topic: str
    records: bytes
    answer: Struct
    partition: int = -1
    """For 2011 topics: this broker's own number of it."""
    led: Led | None = None
    verified: Verified | None = None
    """For batches of transactions: what the coordinator said; None where it was not asked."""

    def refuse(self, error: Kafka2011Error) -> None:
        self.answer.error, self.answer.error_message = refusal(error)
        if isinstance(error, InvalidRecord) and error.records:
            self.answer.record_errors = [Struct(batch_index=number, message=str(error)) for number in error.records]


async def produce(modern: ModernBroker, call: Call) -> Struct | None:
    """Append every partition's batches; answer when they are as safe as was asked."""
    body = call.body
    topics: list[Struct] = []
    rows: list[Row] = []
    old: list[Row] = []
    for topic in body.topics:
        told = []
        is_modern = modern.is_modern(topic.name) or (await modern.created_for(topic.name, call))
        for one in topic.partitions:
            answer = Struct(index=one.index, error=ErrorCode.NONE)
            told.append(answer)
            (rows if is_modern else old).append(Row(topic.name, one.records or b"", answer))
        topics.append(Struct(name=topic.name, partitions=told))
    acks = body.acks
    waiting: list[Deferred[None]] = []
    try:
        _check_request(modern, call, rows, old)
    except Kafka2011Error as error:
        for row in (*rows, *old):
            row.refuse(error)
    else:
        for row in rows:
            _place_row(modern, call, row)
        await check_transactions(modern, call, [row for row in rows if row.led is not None])
        for row in rows:
            flushing = None if row.answer.error else await _append_row(modern, call, row)
            if flushing is not None:
                waiting.append(flushing)
        if old and acks in (ALL, NONE, LEADER):
            waiting += await produce_2011(modern, call, old)
        elif old:
            for row in old:
                row.refuse(_wrong_acks(acks))
    if acks == NONE:
        if any(row.answer.error for row in (*rows, *old)):
            # The only way to tell a client that wants no answer; it then asks for metadata again.
            call.caller.drop("refused", "a produce with acks=0 could not be appended")
        return None
    if waiting:
        await all_of(waiting)
    return Struct(topics=topics)


def _wrong_acks(acks: int) -> Refused:
    return Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}; -1 (all), 0 and 1 mean something")


def _check_request(modern: ModernBroker, call: Call, rows: list[Row], old: list[Row]) -> None:
    """What concerns the whole request: batches that cannot be, and transactions nobody may write."""
    transactional = False
    for row in (*rows, *old):
        data = row.records
        if len(data) <= _ATTRIBUTES_AT:
            continue
        magic, length = data[_MAGIC_AT], int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
        if magic > MAGIC or length < _SMALLEST_LENGTH:
            raise InvalidMessageSize(f"a batch of magic {magic} and {length} bytes in {row.topic}")
        transactional = transactional or bool(magic == MAGIC and data[_ATTRIBUTES_AT] & TRANSACTIONAL)
    if not transactional:
        return
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if modern.verifier is None:
        raise Refused(refused, "transactions are not offered by this broker")
    if not call.body.transactional_id:
        raise Refused(refused, "records of a transaction in a produce without a transactional id")
    if old:
        if call.first_time("transaction"):
            modern.journal.emit(TransactionRefused(client=call.client_id, **call.peer))
        raise Refused(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"{old[0].topic} is of 2011 and holds no transactions")


def _place_row(modern: ModernBroker, call: Call, row: Row) -> None:
    """Find the partition and look at the form of the batch."""
    try:
        led = modern.topics.led(row.topic, row.answer.index)
        _check_form(call, row.records)
        row.led = led
    except Kafka2011Error as error:
        row.refuse(error)


async def _append_row(modern: ModernBroker, call: Call, row: Row) -> Deferred[None] | None:
    """Append one partition's batch; what is to be waited for, if anything is."""
    try:
        if call.body.acks not in (ALL, NONE, LEADER):
            raise _wrong_acks(call.body.acks)
        if row.topic in INTERNAL_TOPICS and call.client_id != _ADMIN_CLIENT:
            raise Refused(ErrorCode.INVALID_TOPIC, f"{row.topic} is written by brokers")
        led = modern.topics.led(row.topic, row.answer.index)
        modern.replication.leading.check(led, everywhere=call.body.acks == ALL)
        prepared = await _prepared(modern, call, led, row.records)
        if row.verified is not None:
            prepared = prepared._replace(must_be_verified=True, verified=row.verified.ticket)
        return _write(modern, call.body.acks, max(call.body.timeout_ms, 0) / 1000, prepared, row)
    except Kafka2011Error as error:
        row.refuse(error)
        return None


def _check_form(call: Call, data: bytes) -> None:
    """One batch, of the newest format, in a codec this version may use."""
    if len(data) <= _ATTRIBUTES_AT:
        raise Refused(ErrorCode.INVALID_RECORD, "no batch in a partition of a produce")
    if data[_MAGIC_AT] != MAGIC:
        raise Refused(ErrorCode.INVALID_RECORD, f"messages of format {data[_MAGIC_AT]}; only {MAGIC} is stored")
    size = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
    if size > len(data):
        raise Refused(ErrorCode.INVALID_RECORD, f"a batch of {size} bytes of which {len(data)} came")
    if len(data) - size > _ATTRIBUTES_AT:
        raise Refused(ErrorCode.INVALID_RECORD, "more than one batch for a partition in one produce")
    if data[_ATTRIBUTES_AT] & CODEC_MASK == ZSTD and call.version < _ZSTD_FROM:
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce version {_ZSTD_FROM}")


async def _prepared(modern: ModernBroker, call: Call, led: Led, data: bytes) -> Prepared:
    """The batch as it will be stored; opened in a thread if that takes long, and the client's next requests wait."""
    config = modern.topics.log_for_writing(led).config
    now_ms = modern.clock.wall_ms()
    if not modern.validator.opens(data, config) or (len(data) < _QUICK_BYTES and not data[_ATTRIBUTES_AT] & CODEC_MASK):
        return modern.validator.prepare(data, config, now_ms)
    work = modern.broker.unpacking.do(lambda: modern.validator.prepare(data, config, now_ms))
    return await call.caller.alone(len(data), work)


def _write(modern: ModernBroker, acks: int, timeout_s: float, prepared: Prepared, row: Row) -> Deferred[None] | None:
    # Anew: while a batch was opened in a thread, another broker may have been elected.
    led = modern.topics.led(row.topic, row.answer.index)
    leading = modern.replication.leading
    everywhere = acks == ALL
    leading.check(led, everywhere=everywhere)
    log = modern.topics.log_for_writing(led)
    appended = log.append(prepared, led.leader_epoch)
    answer = row.answer
    answer.base_offset, answer.log_start = appended.first_offset, log.log_start_offset
    if log.config.append_time or appended.duplicate:
        answer.log_append_ms = appended.timestamp
    if not appended.duplicate:
        counters = modern.broker.counters.topics[row.topic]
        counters.appended_messages += appended.last_offset - appended.first_offset + 1
        counters.appended_bytes += len(prepared.data)
    waiting = leading.stored(led, appended.last_offset + 1, everywhere=everywhere, timeout_s=timeout_s)
    return None if waiting is None else waiting.addErrback(_not_safe, row)


def _not_safe(failure: Failure, row: Row) -> None:
    """Appended, but not known to be as safe as was asked."""
    if isinstance(failure.value, CancelledError):
        return
    error = failure.value
    row.refuse(error if isinstance(error, Kafka2011Error) else LogFailed(str(error)))
    row.answer.base_offset = -1
