"""Offsets a consumer stores, and those it finds.

What becomes of an error, as in Kafka's own consumers (docs/group-protocol.md):

| error | commit_sync | commit_async |
|---|---|---|
| 14, 15, 16, 7, 3, 88, a broken connection | tried again until the time is up | CommitNotStored, not tried again |
| 113 (KIP-848: the epoch has moved on) | tried again with the new epoch | CommitNotStored |
| 22, 25, 27, 82, 110 | CommitRefused: somebody else owns the partitions, or will | the same |
| everything else | GroupError | the same |

An asynchronous commit is not tried again because a later one may have overtaken it: the older offset would win.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from kafka2011.clock import Clock
from kafka2011.errors import ConnectionFailed, Kafka2011Error, RequestTimedOut
from kafka2011.types import TopicPartition
from since2011.client.cluster import Cluster, check
from since2011.client.connection import ModernConnection
from since2011.client.errors import MOVED, CommitNotStored, CommitRefused, GroupError
from since2011.client.fetch.reader import group_by_topic
from since2011.client.group_metadata import GroupMetadata, OffsetAndMetadata
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Done = Callable[[Offsets, Kafka2011Error | None], None]

_OFFSET_FETCH = 7
_AGAIN = {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    *MOVED,
}
_NOT_OURS = {
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
}
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5


class Identity(NamedTuple):
    """Who commits, in the words of the version of OffsetCommit that carries them."""

    group: GroupMetadata
    version: int
    is_outside: bool = False
    """Subscribed, but no member now: without this a commit would pass for that of a program without a membership."""


class _UnderWay(NamedTuple):
    offsets: Offsets
    done: Done
    since: float


class Commits:
    """The offsets of one group, through one connection to its coordinator. Thread: the application's."""

    def __init__(
        self,
        cluster: Cluster,
        identity: Callable[[], Identity],
        clock: Clock,
        *,
        request_timeout_s: float,
        stale: Callable[[], None],
    ) -> None:
        """``stale`` is called when the coordinator says that our epoch is old: a heartbeat brings the new one."""
        self._cluster, self._identity, self._clock = cluster, identity, clock
        self._timeout_s, self._stale = request_timeout_s, stale
        self._connection: ModernConnection | None = None
        self._waiting: deque[tuple[Offsets, Done]] = deque()
        self._under_way: _UnderWay | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no asynchronous commit is under way."""
        return self._under_way is None and not self._waiting

    def store(self, offsets: Offsets, timeout_s: float) -> None:
        """Store and wait until it is durable; asynchronous commits that were begun before come first."""
        deadline = self._clock.monotonic() + timeout_s
        while not self.is_idle and self._clock.monotonic() < deadline:
            self.pump(0.05)
        if not offsets:
            return
        answer = self._ask(ApiKey.OFFSET_COMMIT, self._identity().version, lambda: self._body(offsets), deadline)
        error = _error_of(answer)
        if error is not None:
            raise error

    def begin(self, offsets: Offsets, done: Done) -> None:
        """Store without waiting; ``done`` is called in a later call of ``pump`` or ``store``, in the order begun."""
        self._waiting.append((offsets, done))
        self.pump()

    def pump(self, wait_s: float = 0.0) -> None:
        """Go on with asynchronous commits and tell of those that are done."""
        if self._under_way is not None:
            self._hear(self._under_way, wait_s)
        if self._under_way is None and self._waiting:
            offsets, done = self._waiting.popleft()
            try:
                self._connect().send(ApiKey.OFFSET_COMMIT, self._identity().version, self._body(offsets))
            except CommitRefused as error:
                done(offsets, error)
            except Kafka2011Error as error:
                self._hang_up()
                done(offsets, CommitNotStored(f"the commit was not stored: {error}"))
            else:
                self._under_way = _UnderWay(offsets, done, self._clock.monotonic())

    def fetch(self, partitions: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has stored of these; offsets of open transactions are waited for."""
        wanted = set(partitions)
        deadline = self._clock.monotonic() + timeout_s
        while not self.is_idle and self._clock.monotonic() < deadline:
            self.pump(0.05)
        rows = [Struct(name=topic, partitions=numbers) for topic, numbers in group_by_topic(wanted)]
        group = self._identity().group.group_id
        body = Struct(group=group, topics=rows, require_stable=True)
        answer = self._ask(ApiKey.OFFSET_FETCH, _OFFSET_FETCH, lambda: body, deadline)
        check(f"fetching offsets of {group}", answer.error)
        found = {}
        for topic in answer.topics:
            for one in topic.partitions:
                check(f"fetching the offset of {topic.name}-{one.index} for {group}", one.error)
                if one.offset >= 0:
                    place = TopicPartition(topic.name, one.index)
                    found[place] = OffsetAndMetadata(one.offset, one.leader_epoch, one.metadata or "")
        return found

    def close(self) -> None:
        """Hang up."""
        self._hang_up()

    def _body(self, offsets: Offsets) -> Struct:
        group, _, is_outside = self._identity()
        if is_outside:
            raise CommitRefused("a commit", ErrorCode.UNKNOWN_MEMBER_ID, "the member has left the group; poll joins it")
        rows = [
            Struct(
                name=topic,
                partitions=[
                    Struct(
                        index=partition.partition, offset=at.offset, leader_epoch=at.leader_epoch, metadata=at.metadata
                    )
                    for partition, at in each
                ],
            )
            for topic, each in groupby(sorted(offsets.items()), key=lambda item: item[0].topic)
        ]
        return Struct(
            group=group.group_id,
            generation_or_epoch=group.generation_id,
            member=group.member_id,
            instance=group.group_instance_id,
            topics=rows,
        )

    def _hear(self, under_way: _UnderWay, wait_s: float) -> None:
        error: Kafka2011Error | None
        try:
            answer = self._connect().receive(wait_s)
            if answer is None:
                if self._clock.monotonic() - under_way.since < self._timeout_s:
                    return
                raise RequestTimedOut(f"the coordinator did not answer in {self._timeout_s:.0f} s")
        except Kafka2011Error as failure:
            self._hang_up()
            error = CommitNotStored(f"whether the commit was stored is not known: {failure}")
        else:
            error = _error_of(answer)
            if _errors(answer) & set(MOVED):
                self._hang_up()
        self._under_way = None
        under_way.done(under_way.offsets, error)

    def _ask(self, key: ApiKey, version: int, body: Callable[[], Struct], deadline: float) -> Struct:
        """Ask the coordinator, wherever it is; again while it moves, or while our epoch does."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                answer = self._connect().ask(key, version, body())
            except (ConnectionFailed, RequestTimedOut):
                self._hang_up()
                if self._clock.monotonic() >= deadline:
                    raise
            else:
                errors = _errors(answer)
                if not errors & _AGAIN or self._clock.monotonic() >= deadline:
                    return answer
                if errors & set(MOVED):
                    self._hang_up()
                if ErrorCode.STALE_MEMBER_EPOCH in errors:
                    self._stale()
            self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _connect(self) -> ModernConnection:
        if self._connection is None:
            self._connection = self._cluster.coordinator(self._identity().group.group_id)
        return self._connection

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _errors(answer: Struct) -> set[int]:
    return {getattr(answer, "error", 0)} | {one.error for topic in answer.topics for one in topic.partitions}


def _error_of(answer: Struct) -> Kafka2011Error | None:
    """What a commit was refused with, if it was."""
    for topic in answer.topics:
        for one in topic.partitions:
            what = f"the commit of {topic.name}-{one.index}"
            if one.error in _NOT_OURS:
                hint = "the group is rebalancing; poll, and whoever owns the partition goes on"
                return CommitRefused(what, one.error, hint)
            if one.error in _AGAIN:
                name = ErrorCode(one.error).name.lower()
                return CommitNotStored(f"{what} was not stored: {name} ({one.error}); a later one makes up for it")
            if one.error:
                return GroupError(what, one.error)
    return None
