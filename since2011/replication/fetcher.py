"""One connection to a leader, on which everything followed from it is fetched, round after round.

    round     first the questions of those who do not know yet where their history parts from the leader's, in one
              request; then one fetch for all others, which the leader holds until it has something
    answer    what was appended tells the leader, by the next fetch, how far this broker has come
    trouble   with one partition: it waits a little, the others go on; with the connection: all wait, and connect again

A partition that is added while the leader holds a fetch does not wait for its end: the connection is made anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from twisted.internet.defer import Deferred, ensureDeferred

from kafka2011.broker.reactor import DelayedCall, Reactor, all_of
from kafka2011.errors import ConnectionFailed, InvalidMessage, InvalidMessageSize, Kafka2011Error
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress, TopicPartition
from since2011.replication.copy import Copy
from since2011.replication.events import LeaderUnreachable, ReplicaFailed, ReplicaTruncated
from since2011.replication.flushes import Flushes
from since2011.replication.follower import AskEpoch, FetchFrom
from since2011.replication.peer import Peer, ask_within, connect
from since2011.replication.throttle import Throttle
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

EPOCH_VERSION, FETCH_VERSION, OFFSETS_VERSION = 3, 11, 5
"""What brokers of protocol 2.6 speak with each other."""
HURRY_S = 0.03
"""How long a new partition lets the leader answer the fetch it holds."""
_LATEST, _EARLIEST = -1, -2


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How this broker fetches; the names of real Kafka's settings are in the comments."""

    wait_ms: int = 500  # replica.fetch.wait.max.ms
    min_bytes: int = 1  # replica.fetch.min.bytes
    max_bytes: int = 1 << 20  # replica.fetch.max.bytes
    response_max_bytes: int = 10 << 20  # replica.fetch.response.max.bytes
    backoff_s: float = 1.0  # replica.fetch.backoff.ms
    timeout_s: float = 30.0  # replica.socket.timeout.ms
    n_fetchers: int = 1  # num.replica.fetchers


class Fetcher:
    """Follows some partitions of one leader. Thread: reactor."""

    def __init__(
        self,
        me: int,
        leader: int,
        number: int,
        *,
        reactor: Reactor,
        journal: Journal,
        settings: FetchSettings,
        address_of: Callable[[int], BrokerAddress | None],
        flushes: Flushes,
        throttle: Throttle,
    ) -> None:
        self.me, self.leader, self._name = me, leader, f"broker-{me}-fetcher-{number}"
        self._reactor, self._journal, self._settings = reactor, journal, settings
        self._address_of, self._flushes, self._throttle = address_of, flushes, throttle
        self.copies: dict[TopicPartition, Copy] = {}
        self._peer: Peer | None = None
        self._sleeping: Deferred[None] | None = None
        self._hurrying: DelayedCall | None = None
        self._is_hurried = self._is_parked = self._stopped = False
        self._backoff_s = 0.0
        self._is_unreachable = False
        self.n_bytes = 0
        self._running: Deferred[None] | None = None

    # -- what is followed -----------------------------------------------------------------------------------------

    def add(self, copy: Copy) -> None:
        """Follow a partition."""
        self.copies[copy.key] = copy
        if self._running is None:
            self._stopped = False
            self._running = ensureDeferred(self._run())
        self._wake()

    def remove(self, copy: Copy) -> None:
        """Follow it no more."""
        if self.copies.get(copy.key) is copy:
            del self.copies[copy.key]
        if not self.copies:
            self.stop()

    def stop(self) -> None:
        """Ask nothing more."""
        self._stopped = True
        self._drop()
        self._wake()

    def _wake(self) -> None:
        sleeping, self._sleeping = self._sleeping, None
        if sleeping is not None:
            sleeping.callback(None)
        elif self._is_parked and self._hurrying is None:
            self._hurrying = self._reactor.callLater(HURRY_S, self._hurry, self._peer)

    def _hurry(self, peer: Peer | None) -> None:
        self._hurrying = None
        if self._is_parked and peer is not None and peer is self._peer:
            self._is_hurried = True
            peer.abort()

    # -- the loop -------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self._stopped:
            try:
                await self._round()
                self._backoff_s, self._is_unreachable = 0.0, False
            except Exception as error:  # whatever it is, nothing is followed if this loop ends
                self._drop()
                if self._is_hurried:
                    self._is_hurried = False
                    continue
                if not self._is_unreachable and not self._stopped:
                    self._is_unreachable = True
                    why = str(error) or repr(error)
                    n_partitions = len(self.copies)
                    self._journal.emit(LeaderUnreachable(leader=self.leader, n_partitions=n_partitions, reason=why))
                self._backoff_s = min(self._settings.backoff_s, self._backoff_s * 2 or 0.02)
                await self._sleep(self._backoff_s)
        self._running = None
        if self.copies:
            self.add(next(iter(self.copies.values())))

    def _drop(self) -> None:
        peer, self._peer = self._peer, None
        if peer is not None:
            peer.abort()

    async def _sleep(self, seconds: float | None) -> None:
        if self._stopped:
            return
        waking: Deferred[None] = Deferred()
        self._sleeping = waking
        timer = None if seconds is None else self._reactor.callLater(max(0.0, seconds), self._wake)
        try:
            await waking
        finally:
            if timer is not None and timer.active():
                timer.cancel()

    async def _connected(self) -> Peer:
        if self._peer is None or self._peer.gone:
            address = self._address_of(self.leader)
            if address is None:
                raise ConnectionFailed(f"nobody has told where broker {self.leader} is")
            self._peer = await connect(
                self._reactor, address.host, address.port, self._name, min(5.0, self._settings.timeout_s)
            )
        return self._peer

    async def _ask(self, key: ApiKey, version: int, body: Struct, held_s: float = 0.0) -> Struct:
        peer = await self._connected()
        return await ask_within(self._reactor, peer, self._settings.timeout_s + held_s, key, version, body)

    async def _round(self) -> None:
        now = self._reactor.seconds()
        waiting = [copy for copy in self.copies.values() if copy.stopped is None]
        ready = [copy for copy in waiting if copy.due <= now]
        asking: list[tuple[Copy, AskEpoch]] = []
        fetching: list[tuple[Copy, FetchFrom]] = []
        for copy in ready:
            request = copy.follower.next_request(copy.log_end)
            if isinstance(request, AskEpoch):
                asking.append((copy, request))
            elif not self._throttle.holds_back(copy):
                fetching.append((copy, request))
        if asking:
            await self._ask_epochs(asking)
        elif fetching:
            due = min((copy.due for copy in waiting if copy.due > now), default=now + 60.0)
            await self._fetch(fetching, max(1, min(self._settings.wait_ms, int((due - now) * 1000))))
        else:
            pauses = [copy.due - now for copy in waiting if copy.due > now]
            if ready:
                pauses.append(self._throttle.pause_s)
            await self._sleep(min(pauses, default=None))

    # -- questions ------------------------------------------------------------------------------------------------

    async def _ask_epochs(self, asking: list[tuple[Copy, AskEpoch]]) -> None:
        rows = [
            (copy, Struct(index=copy.index, current_epoch=asked.current_epoch, epoch=asked.epoch))
            for copy, asked in asking
        ]
        body = Struct(replica_id=self.me, topics=_by_topic(rows))
        answer = await self._ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, EPOCH_VERSION, body)
        told = {TopicPartition(t.name, one.index): one for t in answer.topics for one in t.partitions}
        for copy, asked in asking:
            one = told.get(copy.key)
            if one is None or not self._is_followed(copy):
                continue
            if one.error:
                await self._refused(copy, one.error)
                continue
            try:
                n_offsets = await copy.epoch_answered(asked, one)
            except (Kafka2011Error, OSError) as error:
                self._failed(copy, error)
                continue
            copy.backoff_s = 0.0
            if n_offsets:
                self._journal.emit(
                    ReplicaTruncated(
                        topic=copy.topic,
                        partition=copy.index,
                        leader=self.leader,
                        leader_epoch=copy.state.leader_epoch,
                        log_end_offset=copy.log_end,
                        n_offsets=n_offsets,
                    )
                )

    # -- fetching -------------------------------------------------------------------------------------------------

    async def _fetch(self, fetching: list[tuple[Copy, FetchFrom]], wait_ms: int) -> None:
        settings = self._settings
        rows = [
            (
                copy,
                Struct(
                    index=copy.index,
                    leader_epoch=asked.current_epoch,
                    offset=asked.offset,
                    log_start=copy.log_start,
                    max_bytes=settings.max_bytes,
                ),
            )
            for copy, asked in fetching
        ]
        body = Struct(
            replica_id=self.me,
            max_wait_ms=wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
            isolation=0,
            session_id=0,
            session_epoch=-1,
            topics=_by_topic(rows),
            forgotten=[],
            rack="",
        )
        self._is_parked = True
        try:
            answer = await self._ask(ApiKey.FETCH, FETCH_VERSION, body, wait_ms / 1000)
        finally:
            self._is_parked = False
        if answer.error:
            raise ConnectionFailed(f"the fetch was refused with error {answer.error}")
        told = {TopicPartition(t.name, one.index): one for t in answer.topics for one in t.partitions}
        flushing = []
        for copy, asked in fetching:
            one = told.get(copy.key)
            if one is None or not self._is_followed(copy):
                continue
            if one.error:
                await self._refused(copy, one.error)
                continue
            n_bytes = self._take(copy, asked, one)
            if n_bytes:
                log = copy.log
                if log is not None and log.should_flush():
                    flushing.append(self._flushes.flushed(log, log.log_end_offset).addCallback(lambda _: None))
        if flushing:
            await all_of(flushing)

    def _take(self, copy: Copy, asked: FetchFrom, answer: Struct) -> int:
        try:
            n_bytes = copy.fetched(asked, answer)
        except (InvalidMessage, InvalidMessageSize):
            copy.wait(self._reactor.seconds(), self._settings.backoff_s)  # damaged on the way: once more
            return 0
        except (Kafka2011Error, OSError, ValueError) as error:
            self._failed(copy, error)
            return 0
        copy.backoff_s = 0.0
        self.n_bytes += n_bytes
        if n_bytes:
            self._throttle.took(copy, n_bytes)
            # Whoever had something stands last in the next request: others have their turn.
            if self._is_followed(copy):
                del self.copies[copy.key]
                self.copies[copy.key] = copy
        return n_bytes

    # -- trouble with one partition -------------------------------------------------------------------------------

    def _is_followed(self, copy: Copy) -> bool:
        return self.copies.get(copy.key) is copy

    async def _refused(self, copy: Copy, error: int) -> None:
        if error == ErrorCode.FENCED_LEADER_EPOCH:
            copy.stopped = "a newer leader has been elected; the controller will tell"
        elif error == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._out_of_range(copy)
        else:
            copy.wait(self._reactor.seconds(), self._settings.backoff_s)

    async def _out_of_range(self, copy: Copy) -> None:
        """The leader's log ends before ours, or begins after it."""
        latest = await self._offset(copy, _LATEST)
        if latest is None or not self._is_followed(copy):
            return
        try:
            if latest < copy.log_end:
                await copy.cut(latest)
                return
            earliest = await self._offset(copy, _EARLIEST)
            if earliest is not None and earliest > copy.log_end and self._is_followed(copy):
                await copy.begin_anew(earliest)
        except (Kafka2011Error, OSError) as error:
            self._failed(copy, error)

    async def _offset(self, copy: Copy, timestamp: int) -> int | None:
        row = Struct(index=copy.index, leader_epoch=copy.state.leader_epoch, timestamp=timestamp)
        body = Struct(replica_id=self.me, isolation=0, topics=_by_topic([(copy, row)]))
        answer = await self._ask(ApiKey.LIST_OFFSETS, OFFSETS_VERSION, body)
        one = answer.topics[0].partitions[0]
        if one.error:
            copy.wait(self._reactor.seconds(), self._settings.backoff_s)
            return None
        offset: int = one.offset
        return offset

    def _failed(self, copy: Copy, error: Exception) -> None:
        copy.stopped = str(error)
        self._journal.emit(
            ReplicaFailed(topic=copy.topic, partition=copy.index, leader=self.leader, reason=copy.stopped)
        )


def _by_topic(rows: list[tuple[Copy, Struct]]) -> list[Struct]:
    topics: dict[str, list[Struct]] = {}
    for copy, row in rows:
        topics.setdefault(copy.topic, []).append(row)
    return [Struct(name=name, partitions=partitions) for name, partitions in topics.items()]
