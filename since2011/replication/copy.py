"""A partition that is followed here: its log, and what its leader's answers do to it.

asks where an epoch ended   -> the log is cut, in a thread, until both histories are one (``follower``)
fetched                     -> bytes are checked and appended as they are; then the high watermark, then the start
out of range                -> cut to the leader's end, or begun anew at its start
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from kafka2011.types import TopicPartition
from since2011.log.epoch_history import EpochHistory
from since2011.log.log import ModernLog
from since2011.log.truncation import start_at, truncate_to
from since2011.replication.follower import AskEpoch, FetchFrom, Follower
from since2011.replication.partition_state import PartitionState
from since2011.wire.codec import Struct
from since2011.wire.record_batch import checked_header, headers


@dataclass(slots=True)
class Logs:
    """What a copy needs of the broker's logs."""

    get: Callable[[str, int], ModernLog | None]
    create: Callable[[str, int], ModernLog]
    truncated: Callable[[], object]
    """Called in a thread after a cut: recovery points are written down anew."""


@dataclass(slots=True)
class Copy:
    """One partition followed in one epoch. Thread: reactor."""

    topic: str
    index: int
    state: PartitionState
    follower: Follower
    logs: Logs
    due: float = 0.0
    """When it may ask again."""
    backoff_s: float = 0.0
    stopped: str | None = None
    """Why it asks no more until the controller decides anew."""
    has_lag: bool = True
    """Whether the leader had more when it last answered."""
    _working: list[Deferred[None]] | None = field(default=None)

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.index)

    @property
    def log(self) -> ModernLog | None:
        return self.logs.get(self.topic, self.index)

    @property
    def log_end(self) -> int:
        log = self.log
        return 0 if log is None else log.log_end_offset

    @property
    def log_start(self) -> int:
        log = self.log
        return 0 if log is None else log.log_start_offset

    @property
    def high_watermark(self) -> int:
        log = self.log
        return 0 if log is None else log.high_watermark

    def when_quiet(self) -> Deferred[None]:
        """Fire when no thread works on the log any more: only then may this broker lead it."""
        quiet: Deferred[None] = Deferred()
        if self._working is None:
            quiet.callback(None)
        else:
            self._working.append(quiet)
        return quiet

    # -- finding where the histories part -------------------------------------------------------------------------

    async def begin(self) -> None:
        """A log that knows of no epoch is cut at its high watermark."""
        cut = self.follower.begin(self.log_end, self.high_watermark)
        if cut is not None:
            await self.cut(cut.offset)

    async def epoch_answered(self, asked: AskEpoch, answer: Struct) -> int:
        """Cut where the leader's answer says; how many offsets went."""
        cut = self.follower.epoch_answered(asked, (answer.epoch, answer.end_offset), self.log_end, self.high_watermark)
        return 0 if cut is None else await self.cut(cut.offset)

    async def cut(self, offset: int) -> int:
        """Cut the log at ``offset``; how many offsets went."""
        log = self.log
        if log is None:
            return 0
        before = log.log_end_offset
        if offset >= before and not any(entry.start_offset >= before for entry in log.epochs.entries):
            return 0
        await self._work(lambda: self._cut(log, offset))
        return before - log.log_end_offset

    def _cut(self, log: ModernLog, offset: int) -> None:
        if truncate_to(log, offset):
            self.logs.truncated()

    async def begin_anew(self, offset: int) -> None:
        """Forget everything, and go on at ``offset``: the leader has nothing older."""
        log = self.log or self.logs.create(self.topic, self.index)

        def anew() -> None:
            start_at(log, offset)
            self.logs.truncated()

        await self._work(anew)

    async def _work(self, work: Callable[[], None]) -> None:
        assert self._working is None
        self._working = []
        try:
            await deferToThread(work)
        finally:
            waiting, self._working = self._working, None
            for quiet in waiting:
                quiet.callback(None)

    # -- fetching -------------------------------------------------------------------------------------------------

    def fetched(self, asked: FetchFrom, answer: Struct) -> int:
        """Append what the leader has sent; how many bytes. Raises Kafka2011Error if the log cannot take it."""
        if not self.follower.wants(asked, self.log_end):
            return 0
        data: bytes = answer.records or b""
        log = self.log
        if data:
            whole = check(data)
            log = log or self.logs.create(self.topic, self.index)
            log.append_as_follower(data[:whole])
        if log is None:
            self.has_lag = answer.high_watermark > 0
            return 0
        log.raise_high_watermark(answer.high_watermark)
        if answer.log_start > log.log_start_offset:
            with log.lock:
                log.raise_log_start(min(answer.log_start, log.high_watermark))
        self.has_lag = log.log_end_offset < answer.high_watermark
        return len(data)

    def wait(self, now: float, most_s: float) -> None:
        """Ask again later, each time later still, up to ``most_s``."""
        self.backoff_s = min(most_s, self.backoff_s * 2 or 0.02)
        self.due = now + self.backoff_s


def check(data: bytes) -> int:
    """How many bytes whole batches have, whose checksums fit. Raises InvalidMessage."""
    whole = 0
    for position, header in headers(data):
        checked_header(data, position)
        whole = position + header.size
    return whole


def new_copy(me: int, topic: str, index: int, state: PartitionState, logs: Logs) -> Copy:
    """A partition that is followed from now on. Raises Kafka2011Error when its log is offline."""
    log = logs.get(topic, index)
    history: EpochHistory = EpochHistory() if log is None else log.epochs
    return Copy(topic, index, state, Follower(me, state, history), logs)
