"""The consumer an application holds: subscribe or assign, poll, commit. Names and rules are those of Kafka's own.

    with Consumer(bootstrap_servers="127.0.0.1:9192", group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["clicks"])
        while True:
            for record in consumer.poll(1.0):
                print(record.topic, record.partition, record.offset, record.key, record.value)

Whoever polls again is done with what it was given before: that is what auto-commit commits (at least once, as in the
paper's §3.3). Coordination, fetching and commits all go through the modern port of any brokers, a real Kafka's too.
See docs/group-protocol.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

from consumers.group_protocol.member.commits import Commits, Identity, Offsets
from consumers.group_protocol.member.listener import Listener
from consumers.group_protocol.member.positions import Positions
from consumers.group_protocol.member.settings import read_settings
from consumers.group_protocol.member.subscriptions import IllegalUse, Subscriptions
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Journal
from kafka2011.types import TopicPartition
from since2011.client.cluster import Cluster
from since2011.client.errors import CommitNotStored
from since2011.client.fetch.chunk import ConsumerRecord
from since2011.client.fetch.reader import Reader
from since2011.client.group_metadata import GroupMetadata, OffsetAndMetadata

_SLICE_S = 0.1
_JOINING_S = 0.01
_COMMIT_STANDALONE = 7

CommitDone = Callable[[Mapping[TopicPartition, OffsetAndMetadata], Kafka2011Error | None], None]
Wanted = Mapping[TopicPartition, int | OffsetAndMetadata]


class WokenUp(Kafka2011Error):
    """``wakeup`` was called: poll ends, and the consumer can be closed in peace."""

    retriable = True


class Consumer(Positions):
    """See the module. Thread: one, the application's, except ``wakeup``."""

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        /,
        *,
        journal: Journal | None = None,
        clock: Clock = SYSTEM_CLOCK,
        **named: Any,
    ) -> None:
        """Settings by name (``group_id="g"``), or in a mapping by Kafka's own names (``{"group.id": "g"}``)."""
        self.settings = read_settings({**(settings or {}), **named})
        self._clock = clock
        self._cluster = Cluster(self.settings.bootstrap(), client_id=self.settings.client_id)
        super().__init__(Reader(self.settings.bootstrap(), self.settings, clock=clock, journal=journal), self.settings)
        self._commits: Commits | None = None
        if self.settings.group_id is not None:
            self._commits = Commits(
                self._cluster,
                self._identity,
                clock,
                request_timeout_s=self.settings.request_timeout_ms / 1000,
                stale=self._epoch_is_stale,
            )
        self._subscriptions = Subscriptions(
            self.settings,
            self._cluster,
            self._reader,
            committed=self._committed_or_nothing,
            commit=self._commit_before_letting_go,
            clock=clock,
        )
        self._commit_at = clock.monotonic() + self.settings.auto_commit_interval_ms / 1000
        self._wake_up = self._closed = False

    # -- what is read ---------------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] | str | re.Pattern[str], listener: Listener | None = None) -> None:
        """Share these topics with the group, from the next poll on; ``listener`` hears of rebalances.

        A compiled pattern, or a text that begins with ``^``, stands for every topic whose name it matches, future ones
        too.
        """
        if self._commits is None:
            raise IllegalUse("subscribe needs a group_id; assign does not")
        self._subscriptions.subscribe(topics, listener)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these, without a group's help; offsets may still be committed under ``group_id``."""
        if self._commits is not None and self.settings.enable_auto_commit and self._reader.fetcher.positions:
            self._commit_before_letting_go()
        self._subscriptions.assign(partitions)

    def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group."""
        self._subscriptions.unsubscribe()

    def subscription(self) -> set[str]:
        """The topics of ``subscribe``; those a pattern matches now."""
        return set(self._subscriptions.topics)

    def assignment(self) -> set[TopicPartition]:
        """What is read now."""
        return set(self._reader.fetcher.positions)

    def poll(self, timeout_s: float = 1.0, max_records: int | None = None) -> list[ConsumerRecord]:
        """The next records, at most ``max_poll_records``; an empty list when none came in time.

        Rebalances and the callbacks of asynchronous commits happen in here. Raises FetchError for a partition about
        which the application must decide; the others are read on in the next poll.
        """
        at_most = max_records or self.settings.max_poll_records
        deadline = self._clock.monotonic() + timeout_s
        subscriptions, reader = self._subscriptions, self._reader
        subscriptions.polled()
        if self._commits is not None:
            self._commits.pump()
            self._maybe_commit()
        while True:
            left = deadline - self._clock.monotonic()
            while subscriptions.advance(max(0.0, min(_SLICE_S, left))):
                pass
            # Ask ahead before the records are given out: the brokers work while the application does.
            records = reader.take(at_most)
            if records or left <= 0:
                reader.step(0.0)
                return records or reader.take(at_most)
            if self._wake_up:
                self._wake_up = False
                raise WokenUp("poll was woken up")
            wait_s = _JOINING_S if subscriptions.is_joining else _SLICE_S if subscriptions.in_group else left
            reader.step(min(left, wait_s))

    def wakeup(self) -> None:
        """Let the poll under way, or the next one, raise WokenUp. Thread: any."""
        self._wake_up = True
        self._reader.network.wake()

    # -- committing -----------------------------------------------------------------------------------------------

    def commit_sync(self, offsets: Wanted | None = None, timeout_s: float | None = None) -> None:
        """Store offsets, by default of everything given out so far, and wait until they are durable.

        Tried again while the coordinator moves. Raises CommitRefused if the partitions are somebody else's by now,
        CommitNotStored if the time was not enough.
        """
        self._group().store(self._to_commit(offsets), self._patience(timeout_s))

    def commit_async(self, offsets: Wanted | None = None, done: CommitDone | None = None) -> None:
        """Store offsets without waiting, and without a second try.

        ``done`` is called with the offsets and what went wrong, if anything, in a later ``poll``, ``commit_sync`` or
        ``close``, in the order of the commits.
        """
        self._group().begin(self._to_commit(offsets), done or _nothing)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has stored; None where it has nothing."""
        wanted = set(partitions)
        found = self._group().fetch(wanted, self._patience(timeout_s))
        return {partition: found.get(partition) for partition in sorted(wanted)}

    def group_metadata(self) -> GroupMetadata:
        """Our place in the group, for a producer's ``send_offsets_to_transaction``."""
        self._group()
        return self._identity().group

    def _group(self) -> Commits:
        if self._commits is None:
            raise IllegalUse("offsets are stored for a group; there is no group_id")
        return self._commits

    def _identity(self) -> Identity:
        group = self.settings.group_id or ""
        membership = self._subscriptions.membership
        if membership is None:
            return Identity(GroupMetadata(group, group_instance_id=self.settings.group_instance_id), _COMMIT_STANDALONE)
        member, generation, version = membership.credentials()
        metadata = GroupMetadata(group, generation, member, self.settings.group_instance_id)
        return Identity(metadata, version, is_outside=generation < membership.first_generation)

    def _epoch_is_stale(self) -> None:
        if self._subscriptions.membership is not None:
            self._subscriptions.membership.wake()

    def _to_commit(self, offsets: Wanted | None) -> Offsets:
        if offsets is None:
            return self.positions()
        return {
            partition: at if isinstance(at, OffsetAndMetadata) else OffsetAndMetadata(at)
            for partition, at in offsets.items()
        }

    def _committed_or_nothing(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """What is stored; without a group nothing is."""
        return {} if self._commits is None else self._commits.fetch(partitions, self._patience(None))

    def _maybe_commit(self) -> None:
        """What ``auto.commit.interval.ms`` asks for. What the last poll gave out is done with: this is the next one."""
        now = self._clock.monotonic()
        commits = self._group()
        if not self.settings.enable_auto_commit or now < self._commit_at or not commits.is_idle:
            return
        self._commit_at = now + self.settings.auto_commit_interval_ms / 1000
        if offsets := self.positions():
            commits.begin(offsets, self._auto_committed)

    def _auto_committed(self, _offsets: Offsets, error: Kafka2011Error | None) -> None:
        # A refused or lost auto-commit costs duplicates, never records; the next one makes up for it.
        if isinstance(error, CommitNotStored):
            self._commit_at = self._clock.monotonic() + self.settings.retry_backoff_ms / 1000

    def _commit_before_letting_go(self) -> None:
        """Auto-commit before partitions go to others, so that they begin where we ended."""
        if self._commits is not None and self.settings.enable_auto_commit:
            try:
                self._commits.store(self.positions(), self.settings.request_timeout_ms / 1000)
            except Kafka2011Error:
                pass  # as in _auto_committed: duplicates, never losses

    # -- the end --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Commit (with auto-commit on), let go, leave the group. May be called twice."""
        if self._closed:
            return
        self._closed = True
        try:
            self._subscriptions.close()
            if self._commits is not None:
                if not self._commits.is_idle:
                    self._commits.store({}, self.settings.request_timeout_ms / 1000)
                self._commits.close()
        finally:
            self._reader.close()
            self._cluster.close()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _nothing(_offsets: Offsets, _error: Kafka2011Error | None) -> None:
    """Nobody asked to be told."""
