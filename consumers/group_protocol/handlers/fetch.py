"""Fetch: hold the request until there is enough or the time is up, then serve batches.

Spec: modern-group-protocol §1.6, §1.7. No fetch sessions: session id 0 in every answer makes clients send full fetches.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from consumers.group_protocol.codec import Struct
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.handlers.refusals import refusal
from kafka2011.errors import Kafka2011Error, OffsetOutOfRange
from kafka2011.log.log import Log
from kafka2011.types import TopicPartition

if TYPE_CHECKING:
    from consumers.group_protocol.handlers.call import Call
    from consumers.group_protocol.service import Modern

MAX_WAIT_MS = 60_000
MAX_ANSWER = 2 << 20
"""Bytes of records in one answer, whatever is asked for; a single larger message still goes. They are made anew for
every fetch, so this is what a client that does not read its answers can cost."""
MIN_SHARE = 64 << 10
"""What each partition that has messages gets of an answer, if they are many."""


@dataclass(slots=True)
class _Wanted:
    """One partition of a fetch."""

    topic: str
    request: Any
    local: TopicPartition | None = None
    log: Log | None = None
    error: ErrorCode = ErrorCode.NONE
    records: bytes = b""

    @property
    def available(self) -> int:
        """Bytes that can be read from the offset asked for."""
        return 0 if self.log is None or self.error else max(self.log.flushed_offset - self.request.offset, 0)


async def fetch(modern: Modern, call: Call) -> Struct:
    """Serve from every partition asked for, in the order they were asked for."""
    body = call.body
    if body.session_epoch > 0:
        return Struct(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, topics=[])
    wanted = [_Wanted(topic.name, partition) for topic in body.topics for partition in topic.partitions]
    deadline = modern.broker.now() + min(max(body.max_wait_ms, 0), MAX_WAIT_MS) / 1000
    while True:
        for one in wanted:
            _look(modern, one)
        left = deadline - modern.broker.now()
        if _is_enough(wanted, body.min_bytes) or left <= 0:
            break
        await modern.arrivals.wait({one.local for one in wanted if one.local is not None}, left)
    await call.turn()
    return await _serve(modern, wanted, min(body.max_bytes, MAX_ANSWER))


def _look(modern: Modern, one: _Wanted) -> None:
    """See what there is, without reading."""
    one.error = ErrorCode.NONE
    try:
        modern.check_leader_epoch(one.request.leader_epoch)
        one.local = TopicPartition(one.topic, modern.local_partition(one.topic, one.request.index))
        one.log = modern.broker.store.get(one.topic, one.local.partition)
        first, end = (one.log.oldest_offset, one.log.flushed_offset) if one.log else (0, 0)
        if not first <= one.request.offset <= end:
            raise OffsetOutOfRange(one.request.offset, first, end, str(one.local))
    except Kafka2011Error as error:
        one.error, _ = refusal(error)


def _is_enough(wanted: list[_Wanted], min_bytes: int) -> bool:
    if not wanted:
        return False
    return any(one.error for one in wanted) or sum(one.available for one in wanted) >= min_bytes


async def _serve(modern: Modern, wanted: list[_Wanted], room: int) -> Struct:
    with_messages = [one for one in wanted if one.available]
    # Not always the same first: else a busy partition would keep those behind it from ever being read.
    random.shuffle(with_messages)
    share = max(room // max(len(with_messages), 1), MIN_SHARE)
    served = 0
    for one in with_messages:
        assert one.log is not None
        # The first message of the answer is served however large it is, or the reader would be stuck before it.
        if served and served >= room:
            break
        try:
            size = min(one.request.max_bytes, share, room - served)
            one.records = await modern.bridge.read(one.log, one.request.offset, size)
        except Kafka2011Error as error:
            one.error, _ = refusal(error)
        served += len(one.records)
    topics: dict[str, list[Struct]] = {}
    for one in wanted:
        topics.setdefault(one.topic, []).append(_answer(one))
    modern.broker.counters.sent_bytes["modern"] += served
    return Struct(topics=[Struct(name=name, partitions=rows) for name, rows in topics.items()])


def _answer(one: _Wanted) -> Struct:
    if one.error:
        return Struct(index=one.request.index, error=one.error, aborted=[], records=b"")
    end = one.log.flushed_offset if one.log else 0
    return Struct(
        index=one.request.index,
        error=ErrorCode.NONE,
        high_watermark=end,
        last_stable=end,
        log_start=one.log.first_offset if one.log else 0,
        aborted=[],
        records=one.records,
    )

