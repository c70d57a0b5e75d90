"""Fetch: hold the request until there is enough or the time is up, then send the stored bytes as they lie in the file.

Behavior:
- Readers see what lies below the high watermark; with isolation level 1 below the last stable offset, together with
  the transactions that were aborted, which the client passes over.
- Bytes are whole batches from the one that holds the offset asked for; the last may be cut, and clients drop a cut one.
- At most ``max_bytes`` of the request and of each partition, in the order of the request; the first partition that has
  anything gives at least one whole batch, however large.
- Answered at once if there are ``min_bytes``, if a reader is behind by a segment (an answer ends with its segment, and
  waiting adds nothing), if anything is wrong with a partition, or if nothing is asked for; else when something arrives
  or ``max_wait_ms`` is over.
- A follower (``replica_id`` of 0 and more) is sent everything up to the end of the log; what it asks for tells how far
  it has come. When its connection is closed its leader soon takes it for gone.
- After an election consumers wait until everything the leader began with is committed, and are told
  NOT_LEADER_OR_FOLLOWER if that takes longer than they wait: no high watermark is told that is behind an older one.
- Within a fetch session (``since2011.server.fetch_sessions``) a request names what has changed, and so does the answer.
- Topics of 2011 are read through ``since2011.era2011.fetch``.

Version notes:
- 0 to 3 are not offered: they carry message formats older than the record batch.
- 5 log start offset; 7 sessions; 9 the leader epoch is checked; 12 flexible, and a reader that names the epoch of its
  last batch is told where its history parts from ours; 13 topic ids instead of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kafka2011.errors import Kafka2011Error, OffsetOutOfRange
from kafka2011.types import TopicPartition
from since2011.era2011.fetch import Wanted2011, serve_2011
from since2011.log.log import ModernLog
from since2011.log.reading import Slice
from since2011.replication.led import Led
from since2011.server.fetch_sessions import FULL, FetchSession, Key
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused, refusal

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

MAX_WAIT_MS = 60_000
MAX_BYTES = 55 << 20
"""Of one answer, whatever is asked for (``fetch.max.bytes``)."""
SMALL = 16 << 10
"""Records up to this size are read and sent with what is around them, in one write."""
_COMMITTED = 1


class _Wanted:
    """One partition of a modern topic in a fetch."""

    __slots__ = ("committed", "diverging", "error", "is_unsettled", "key", "led", "part", "replica", "request", "topic")

    def __init__(self, topic: str, request: Any, committed: bool, replica: int) -> None:
        self.topic, self.request, self.committed, self.replica = topic, request, committed, replica
        self.key = TopicPartition(topic, request.index)
        self.led: Led | None = None
        self.part: Slice | None = None
        self.error = ErrorCode.NONE
        self.diverging: Struct | None = None
        self.is_unsettled = False

    def arrived(self, modern: ModernBroker) -> None:
        """Let the leader know how far a follower has come: once, and what is wrong ``look`` finds out."""
        request = self.request
        try:
            led = modern.topics.led(self.topic, request.index)
            led.check_epoch(request.leader_epoch)
        except Kafka2011Error:
            return
        modern.replication.leading.fetched(led, self.replica, request.offset, request.log_start)

    def look(self, modern: ModernBroker, room: int, at_least_one: bool) -> int:
        """Find what there is to send; how many bytes that are."""
        self.error, self.part, self.diverging = ErrorCode.NONE, None, None
        request = self.request
        try:
            led = self.led = modern.topics.led(self.topic, request.index)
            led.check_epoch(request.leader_epoch)
            if self.replica >= 0:
                led.check_replica(self.replica, request.leader_epoch)
            self.is_unsettled = self.replica < 0 and not led.is_settled
            if self.is_unsettled:
                return 0
            log, offset = led.log, request.offset
            if log is None:
                if offset != 0:
                    raise OffsetOutOfRange(offset, 0, 0, str(self.key))
                return 0
            if request.last_epoch >= 0:
                self.diverging = _diverging(led, offset, request.last_epoch)
                if self.diverging is not None:
                    return 0
            size = min(request.max_bytes, room)
            self.part = log.locate(offset, size, self._readable(log), at_least_one=at_least_one)
        except Kafka2011Error as error:
            self.error, _ = refusal(error)
        return 0 if self.part is None else self.part.size

    def _readable(self, log: ModernLog) -> int:
        if self.replica >= 0:
            return log.log_end_offset
        return log.last_stable_offset if self.committed else log.high_watermark

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to say but, perhaps, where the log begins and ends."""
        return not (self.part or self.error or self.diverging or self.is_unsettled)

    @property
    def ends(self) -> tuple[int, int]:
        """High watermark and log start, as they are answered."""
        return (-1, -1) if self.led is None else (self.led.high_watermark, self.led.log_start_offset)

    def answer(self) -> Struct:
        """Its part of the answer."""
        led, part = self.led, self.part
        if self.is_unsettled and not self.error:
            self.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.error or led is None:
            return Struct(index=self.request.index, error=self.error, aborted=None, records=b"")
        aborted = None
        if self.committed:
            found = [] if part is None or led.log is None else led.log.aborted(part)
            aborted = [Struct(producer_id=one.producer_id, first_offset=one.first_offset) for one in found]
        return Struct(
            index=self.request.index,
            error=ErrorCode.NONE,
            high_watermark=led.high_watermark,
            last_stable=led.last_stable_offset,
            log_start=led.log_start_offset,
            diverging_epoch=self.diverging,
            aborted=aborted,
            records=b"" if part is None else part.read() if part.size <= SMALL else part,
        )


Entry = _Wanted | Wanted2011 | Struct
Entries = list[tuple[Key, Struct, Entry]]


def _diverging(led: Led, offset: int, last_epoch: int) -> Struct | None:
    """Where the reader's history parts from ours, if it does before ``offset``."""
    log = led.log
    assert log is not None
    if offset < log.log_start_offset:
        raise OffsetOutOfRange(offset, log.log_start_offset, log.log_end_offset, str(log))
    epoch, end = log.epochs.end_offset(last_epoch, log.log_end_offset)
    if epoch < 0:
        raise OffsetOutOfRange(offset, log.log_start_offset, log.log_end_offset, str(log))
    return Struct(epoch=epoch, end_offset=end) if epoch < last_epoch or end < offset else None


async def fetch(modern: ModernBroker, call: Call) -> Struct:
    """Serve from every partition asked for, in the order they were asked for."""
    body = call.body
    try:
        session = modern.fetch_sessions.of(call.caller, body, by_id=call.version >= 13)
    except Refused as refused:
        return Struct(error=refused.error, topics=[])
    entries = _entries(modern, call, session)
    if session is None:
        await _wait(modern, call, entries)
        return Struct(topics=_by_topic((topic, _row(one)) for _, topic, one in entries))
    session.is_busy = True
    try:
        await _wait(modern, call, entries)
    finally:
        session.is_busy = False
    is_first = body.session_epoch == FULL
    return Struct(session_id=session.number, topics=_by_topic(_news(session, entries, is_first)))


async def _wait(modern: ModernBroker, call: Call, entries: Entries) -> None:
    """Until there is something to say, or time is up; each entry is then ready to be answered."""
    body = call.body
    wanted = [one for _, _, one in entries if isinstance(one, _Wanted)]
    old = [one for _, _, one in entries if isinstance(one, Wanted2011)]
    room = max(0, min(body.max_bytes, MAX_BYTES))
    deadline = modern.broker.now() + min(max(body.max_wait_ms, 0), MAX_WAIT_MS) / 1000
    delayed = modern.delayed_fetches
    replica = _replica(body)
    if replica >= 0:
        delayed = modern.replication.leading.followers
        modern.replication.asked_by(call.caller, replica, (one.key for one in wanted))
        for one in wanted:
            one.arrived(modern)
    while True:
        size, ready = _look(modern, wanted, old, room)
        ready = ready or size >= min(body.min_bytes, body.max_bytes) or not (wanted or old)
        left = deadline - modern.broker.now()
        if ready or left <= 0:
            break
        keys = {one.key for one in wanted} | {one.key for one in old if one.key is not None}
        await delayed.wait(keys, left)
    if old:
        await call.turn()
        await serve_2011(modern, old, room - sum(one.part.size for one in wanted if one.part is not None))


def _replica(body: Struct) -> int:
    """The broker that fetches as a follower; -1 for a consumer, and for one of those that are for testing only."""
    replica: int = getattr(body, "replica_id", -1)
    return replica


def _row(one: Entry) -> Struct:
    return one if isinstance(one, Struct) else one.answer()


def _by_topic(rows: Iterable[tuple[Struct, Struct]]) -> list[Struct]:
    """The rows of the answer below their topics; neighbours share one."""
    topics: list[Struct] = []
    last: tuple[str, object] | None = None
    for topic, row in rows:
        if (topic.name, topic.topic_id) != last:
            last = topic.name, topic.topic_id
            topics.append(Struct(name=topic.name, topic_id=topic.topic_id, partitions=[]))
        topics[-1].partitions.append(row)
    return topics


def _entries(modern: ModernBroker, call: Call, session: FetchSession | None) -> Entries:
    """All partitions asked for, in order: by this request or, in a session, by those before it."""
    replica = _replica(call.body)
    committed = call.body.isolation == _COMMITTED and replica < 0
    if session is None:
        return [
            ((topic.name, row.index), topic, _entry(modern, call, topic, row, committed, replica))
            for topic in call.body.topics
            for row in topic.partitions
        ]
    stamp = modern.view(), committed, replica
    if not isinstance(session.stamp, tuple) or session.stamp[0] is not stamp[0] or session.stamp[1:] != stamp[1:]:
        session.made.clear()
        session.stamp = stamp
    entries: Entries = []
    for key, (topic, row) in session.wanted.items():
        one = session.made.get(key)
        if not isinstance(one, _Wanted):
            one = _entry(modern, call, topic, row, committed, replica)
            session.made[key] = one
        entries.append((key, topic, one))
    return entries


def _entry(modern: ModernBroker, call: Call, topic: Struct, row: Struct, committed: bool, replica: int) -> Entry:
    name = topic.name if call.version < 13 else modern.view().ids.get(topic.topic_id)
    if name is None:
        code, _ = refusal(Refused(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id"))
        return Struct(index=row.index, error=code, aborted=None, records=b"")
    return _Wanted(name, row, committed, replica) if modern.is_modern(name) else Wanted2011(name, row)


def _news(session: FetchSession, entries: Entries, is_first: bool) -> Iterator[tuple[Struct, Struct]]:
    """What the reader has to be told: everything in the first answer of a session, and always of topics of 2011."""
    for key, topic, one in entries:
        if isinstance(one, _Wanted) and one.is_quiet and not (session.is_news(key, *one.ends) or is_first):
            continue
        row = _row(one)
        if row.error:
            session.failed(key)
        elif isinstance(one, _Wanted):
            session.is_news(key, *one.ends)
            one.part = None  # the file is held for as long as the answer is on its way, not for the session
        if row.records:
            session.served(key)
        yield topic, row


def _look(modern: ModernBroker, wanted: list[_Wanted], old: list[Wanted2011], room: int) -> tuple[int, bool]:
    """How many bytes there are, and whether the answer must not wait for more."""
    size, ready = 0, False
    for one in wanted:
        size += one.look(modern, room - size, at_least_one=size == 0)
        is_behind = one.part is not None and one.part.goes_on
        ready = ready or is_behind or bool(one.error) or one.diverging is not None
    for two in old:
        two.look(modern)
        size += two.available
        ready = ready or bool(two.error)
    return size, ready
