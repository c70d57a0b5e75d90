"""Fetch from 2011 topics: message sets are turned into record batches, made anew for every fetch.

See docs/modern-port.md.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka2011.errors import Kafka2011Error, OffsetOutOfRange
from kafka2011.log.log import Log
from kafka2011.types import TopicPartition
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import refusal

if TYPE_CHECKING:
    from since2011.server.service import ModernBroker

MAX_ANSWER = 2 << 20
"""Bytes of records in one answer, whatever is asked for; a single larger message still goes. They are made anew for
every fetch, so this is what a client that does not read its answers can cost."""
MIN_SHARE = 64 << 10
"""What each partition that has messages gets of an answer, if they are many."""


@dataclass(slots=True)
class Wanted2011:
    """One partition of a fetch."""

    topic: str
    request: Any
    key: TopicPartition | None = None
    log: Log | None = None
    error: ErrorCode = ErrorCode.NONE
    records: bytes = b""

    @property
    def available(self) -> int:
        """Bytes that can be read from the offset asked for."""
        return 0 if self.log is None or self.error else max(self.log.visible_offset - self.request.offset, 0)

    def look(self, modern: ModernBroker) -> None:
        """See what there is, without reading."""
        self.error = ErrorCode.NONE
        try:
            modern.check_leader_epoch(self.request.leader_epoch)
            self.key = TopicPartition(self.topic, modern.local_partition(self.topic, self.request.index))
            self.log = modern.broker.store.get(self.topic, self.key.partition)
            first, end = (self.log.oldest_offset, self.log.reach) if self.log else (0, 0)
            if not first <= self.request.offset <= end:
                raise OffsetOutOfRange(self.request.offset, first, end, str(self.key))
        except Kafka2011Error as error:
            self.error, _ = refusal(error)

    def answer(self) -> Struct:
        """Its part of the answer."""
        if self.error:
            return Struct(index=self.request.index, error=self.error, aborted=[], records=b"")
        end = self.log.visible_offset if self.log else 0
        return Struct(
            index=self.request.index,
            error=ErrorCode.NONE,
            high_watermark=end,
            last_stable=end,
            log_start=self.log.first_offset if self.log else 0,
            aborted=[],
            records=self.records,
        )


async def serve_2011(modern: ModernBroker, wanted: list[Wanted2011], room: int) -> None:
    """Read what fits into ``room``."""
    room = min(room, MAX_ANSWER)
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
    modern.broker.counters.sent_bytes["modern"] += served
