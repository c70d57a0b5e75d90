"""One function per request: what the broker does and what it answers (docs/protocol.md).

Paper: §3.1. Errors raised here close the connection without an answer, as 0.7 does; errors with a wire code are
answered. Fetching never creates anything, and the broker remembers nothing about who fetched.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Cooperator
from twisted.python.failure import Failure

from kafka2011.broker.long_work import check_quickly, quick_budget
from kafka2011.broker.reactor import in_time
from kafka2011.errors import (
    InvalidRequest,
    Kafka2011Error,
    LogCorrupt,
    LogError,
    NotServing,
    OffsetOutOfRange,
    WrongPartition,
)
from kafka2011.log.segment import FileSlice
from kafka2011.wire import (
    EARLIEST,
    LATEST,
    AckedProduceRequest,
    AckLevel,
    FetchRequest,
    MultiFetchRequest,
    OffsetsRequest,
    SetSummary,
    validate_set,
)
from kafka2011.wire.acked_produce import encode_acked_error, encode_acked_response
from kafka2011.wire.fetch import encode_fetch_header
from kafka2011.wire.file_range import FileRange
from kafka2011.wire.multifetch import encode_multifetch_header
from kafka2011.wire.offsets import encode_offsets_response

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

Answer = Sequence[bytes | FileRange]

UNKNOWN = -1
MOST_ANSWER_BYTES = (1 << 31) - 1 - 2
"""The size field of an answer is an i32 and counts the error code too."""
MOST_FILES = 512
"""Files one multi-fetch answer holds open; partitions beyond are answered empty, and the client asks again."""
FETCHES_AT_ONCE = 1000
_FETCHES_PER_STEP = 50


def fetch(broker: Broker, request: FetchRequest) -> Answer:
    """A head, and a range of one segment file for the kernel to send."""
    found = _find(broker, request, MOST_ANSWER_BYTES)
    if isinstance(found, FileSlice):
        return (encode_fetch_header(found.size), found)
    return (encode_fetch_header(0, found),)


def multifetch(broker: Broker, request: MultiFetchRequest) -> Answer | Deferred[Answer]:
    """The answers one after the other under one head; an error stays with its own partition.

    Thousands of them are looked up in many turns, so that others are served between.
    """
    found: list[FileSlice | int] = [0] * len(request.fetches)
    steps = _find_all(broker, request.fetches, found)
    if len(found) <= FETCHES_AT_ONCE:
        for _ in steps:
            pass
        return _joined(found)
    turns = Cooperator(scheduler=lambda work: cast(IDelayedCall, broker.reactor.callLater(0, work)))
    return turns.coiterate(steps).addCallback(lambda _: _joined(found))


def _find_all(broker: Broker, fetches: Sequence[FetchRequest], found: list[FileSlice | int]) -> Iterator[None]:
    left, files = MOST_ANSWER_BYTES - 6 * len(fetches), MOST_FILES
    # More partitions than files an answer may hold open: begin anywhere, so that none is left out every time.
    first = random.randrange(len(fetches)) if len(fetches) > MOST_FILES else 0
    for n, k in enumerate((*range(first, len(fetches)), *range(first))):
        one = found[k] = _find(broker, fetches[k], left if files else 0)
        if isinstance(one, FileSlice):
            left -= one.size
            files -= 1
        if n % _FETCHES_PER_STEP == 0:
            yield


def _joined(found: list[FileSlice | int]) -> Answer:
    parts: list[bytes | FileRange] = []
    head = [encode_multifetch_header(one.size if isinstance(one, FileSlice) else 0 for one in found)]
    for one in found:
        if isinstance(one, FileSlice):
            parts += (b"".join((*head, encode_fetch_header(one.size))), one)
            head = []
        else:
            head.append(encode_fetch_header(0, one))
    return [*parts, b"".join(head)] if head else parts


def _find(broker: Broker, request: FetchRequest, most: int) -> FileSlice | int:
    """The bytes a fetch asks for, or the error code of an answer without bytes (0: there is nothing to read)."""
    counters = broker.counters.topics
    try:
        log = broker.store.get(request.topic, request.partition)
        if log is None:
            return 0
        if request.max_size < 0:
            return UNKNOWN
        found = log.read(request.offset, min(request.max_size, most))
    except (OffsetOutOfRange, WrongPartition) as error:
        if request.topic in counters:
            counters[request.topic].failed_fetches += 1
        assert error.code is not None
        return error.code
    except NotServing:
        raise
    except (Kafka2011Error, OSError) as error:
        # 0.7 answers -1 to anything unforeseen in a fetch: an illegal name, a partition the disk took away.
        if isinstance(error, LogError):
            counters[request.topic].failed_fetches += 1
        return UNKNOWN
    if not found.size:
        broker.wanted(log)
        return 0
    counters[request.topic].fetched_bytes += found.size
    return found


def offsets(broker: Broker, request: OffsetsRequest) -> Answer:
    """Offsets at or before a time, newest first; a log that is not there yet begins and ends at 0."""
    try:
        log = broker.store.get(request.topic, request.partition)
    except LogCorrupt:
        # 0.7 has no such partition. An error says that this one is the trouble; a close would look like ours.
        return (encode_offsets_response((), UNKNOWN),)
    if log is not None:
        return (encode_offsets_response(log.offsets_before(request.time_ms, request.max_offsets)),)
    known = [0] if request.time_ms in (LATEST, EARLIEST) else []
    return (encode_offsets_response(known[: request.max_offsets]),)


def acked_produce(broker: Broker, request: AckedProduceRequest, address: str) -> Answer | Deferred[Answer]:
    """Append and say where; at level 2 only after it is on disk. Not in 2011."""
    if not broker.acks_enabled:
        raise InvalidRequest("request key 100 is off; set produce.acks.enable=true")
    if request.level is AckLevel.ALL and not broker.visibility.has_copies:
        raise InvalidRequest("level 3 (all) is for brokers with standbys; ask for level 2")
    data = request.produce.data
    try:
        if request.level is AckLevel.ALL:
            broker.visibility.check_copies()
        summary = check_quickly(data, quick_budget())
    except Kafka2011Error as error:
        return (encode_acked_error(error),)
    if summary is not None:
        return _append_acked(broker, request, summary, address)
    checked = broker.unpacking.do(lambda: validate_set(data, budget=broker.request_budget()))
    return checked.addCallbacks(lambda summary: _append_acked(broker, request, summary, address), _refused)


def _append_acked(
    broker: Broker, request: AckedProduceRequest, summary: SetSummary, address: str
) -> Answer | Deferred[Answer]:
    produce = request.produce
    try:
        log = broker.log_for_produce(produce.topic, produce.partition, address)
        first, end = broker.append(log.topic, log.partition, produce.data, summary)
    except Kafka2011Error as error:
        return (encode_acked_error(error),)
    answer: Answer = (encode_acked_response(first, end),)
    if request.level is AckLevel.APPENDED:
        return answer
    broker.flush(log)
    if request.level is AckLevel.ALL:
        wait, what = broker.visibility.when_safe(log, end), "not held by all in sync"
    else:
        wait, what = broker.when_flushed(log, end), "not flushed"
    safe = in_time(broker.reactor, broker.acks_timeout_s, wait, f"{log.topic}-{log.partition} {what}")
    return safe.addCallbacks(lambda _: answer, _refused)


def _refused(failure: Failure) -> Answer:
    failure.trap(Kafka2011Error)
    assert isinstance(failure.value, Kafka2011Error)
    return (encode_acked_error(failure.value),)
