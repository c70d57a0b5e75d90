"""The member an application holds: subscribe, poll, commit.

See docs/group-protocol.md (defaults). Whoever polls again is done with what it was given before: that
is what auto-commit commits (at least once, as in the paper's §3.3).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from types import TracebackType
from typing import Literal

from consumers.group_protocol.member.addresses import read_addresses, read_brokers
from consumers.group_protocol.member.classic import ClassicMembership
from consumers.group_protocol.member.consumer import ConsumerMembership
from consumers.group_protocol.member.listener import Listener
from consumers.group_protocol.member.membership import Change, Membership, Settings
from consumers.group_protocol.member.reading import Message, Reading
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.errors import ConnectionFailed, Kafka2011Error, RequestTimedOut
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress, TopicPartition
from since2011.client.cluster import Cluster, Topics, check
from since2011.client.connection import ModernConnection
from since2011.client.errors import MOVED, CommitRefused
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

_TRY_AGAIN = {ErrorCode.STALE_MEMBER_EPOCH, *MOVED}

__all__ = ["Member", "Message"]

METADATA_S = 5.0
_SLICE_S = 0.1
PATIENCE_S = 30.0
"""How long a commit is tried again while the coordinator moves or the member's epoch does."""


class Member:
    """A member of a group. Thread: one, the application's."""

    def __init__(
        self,
        group: str,
        *,
        modern: str | Sequence[tuple[str, int]],
        brokers: str | Sequence[BrokerAddress],
        protocol: Literal["classic", "consumer"] = "classic",
        assignor: str | None = None,
        client_id: str = "kafka2011",
        instance: str | None = None,
        session_ms: int = 45_000,
        heartbeat_ms: int = 3_000,
        max_poll_interval_ms: int = 300_000,
        auto_commit_s: float | None = 5.0,
        reset: Literal["smallest", "largest", "raise"] = "smallest",
        journal: Journal | None = None,
    ) -> None:
        """``modern``: where today's protocol is spoken; ``brokers``: where the log is read, on the 2011 ports, as
        ``ID@HOST:PORT,...`` (for a single broker HOST:PORT is enough).

        ``assignor``: range (default), roundrobin, sticky, cooperative-sticky or one's own; with the consumer protocol
        uniform (default) or range, computed by the broker. ``auto_commit_s`` None: only ``commit`` commits.
        """
        bootstrap = read_addresses(modern) if isinstance(modern, str) else list(modern)
        self._cluster = Cluster(bootstrap, client_id=client_id)
        self._brokers = brokers
        default = "range" if protocol == "classic" else "uniform"
        settings = Settings(
            group, client_id, instance, session_ms, heartbeat_ms, max_poll_interval_ms, assignor or default
        )
        kind: type[ClassicMembership | ConsumerMembership] = (
            ClassicMembership if protocol == "classic" else ConsumerMembership
        )
        self._membership: Membership = kind(settings, self._cluster)
        self._settings, self._listener = settings, Listener()
        self._reset, self._journal, self._auto_commit_s = reset, journal, auto_commit_s
        self._reading: Reading | None = None
        self._topics, self._topics_at = Topics({}, {}, {}), -METADATA_S
        self._commit_at = SYSTEM_CLOCK.monotonic() + (auto_commit_s or 0)
        self._commits: ModernConnection | None = None
        self._committing = threading.Lock()
        self._membership.topics = lambda: self._topics

    # Reading

    def subscribe(self, topics: Iterable[str], listener: Listener | None = None) -> None:
        """Read these topics from the next poll on; ``listener`` hears of rebalances."""
        self._listener = listener or self._listener
        self._membership.wanted = tuple(sorted(set(topics)))
        self._topics_at = -METADATA_S
        self._membership.rejoin()

    def poll(self, timeout_s: float = 1.0, at_most: int = 500) -> list[Message]:
        """The next messages; an empty list when none came in time. Rebalances happen in here."""
        deadline = SYSTEM_CLOCK.monotonic() + timeout_s
        self._membership.polled()
        self._maybe_commit()
        while True:
            self._refresh()
            left = deadline - SYSTEM_CLOCK.monotonic()
            change = self._membership.advance(0.0 if self._membership.owned else min(_SLICE_S, max(0.0, left)))
            if change is not None:
                self._carry_out(change)
                continue
            messages = self._reading.take(at_most, min(_SLICE_S, left)) if self._reading else []
            if messages or left <= 0:
                return messages
            if self._reading is None:
                SYSTEM_CLOCK.sleep(min(0.01, max(0.0, left)))

    def assignment(self) -> set[TopicPartition]:
        """What is ours now."""
        return set(self._membership.owned)

    def pause(self, *partitions: TopicPartition) -> None:
        """Deliver nothing of these until ``resume``; they stay ours."""
        self._now_reading().pause(partitions, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with these."""
        self._now_reading().pause(partitions, False)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at ``offset`` in a partition that is ours."""
        self._now_reading().seek(partition, offset)

    def position(self, partition: TopicPartition) -> int | None:
        """The offset after the last message ``poll`` gave out."""
        return self._now_reading().positions.get(partition)

    # Committing

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Store offsets (default: of everything given out so far) and wait until they are durable."""
        self._send_commit(self._wanted(offsets), PATIENCE_S)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, int] | None = None,
        done: Callable[[Kafka2011Error | None], None] = lambda error: None,
    ) -> None:
        """Store offsets without waiting; ``done`` is called in another thread with what went wrong, if anything."""
        wanted = self._wanted(offsets)

        def work() -> None:
            try:
                self._send_commit(wanted, PATIENCE_S)
            except Kafka2011Error as error:
                done(error)
            else:
                done(None)

        threading.Thread(target=work, name="commit", daemon=True).start()

    def _wanted(self, offsets: Mapping[TopicPartition, int] | None) -> dict[TopicPartition, int]:
        if offsets is not None:
            return dict(offsets)
        return self._reading.positions if self._reading else {}

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """What the group has stored; None where it has nothing."""
        wanted = sorted(set(partitions))
        rows = [
            Struct(name=t, partitions=[p.partition for p in each]) for t, each in groupby(wanted, lambda p: p.topic)
        ]
        answer = self._ask(ApiKey.OFFSET_FETCH, 5, lambda: Struct(group=self._settings.group, topics=rows), PATIENCE_S)
        check(f"fetching offsets of {self._settings.group}", answer.error)
        found: dict[TopicPartition, int | None] = dict.fromkeys(wanted)
        for topic in answer.topics:
            for each in topic.partitions:
                found[TopicPartition(topic.name, each.index)] = each.offset if each.offset >= 0 else None
        return found

    def _send_commit(self, offsets: Mapping[TopicPartition, int], patience_s: float) -> None:
        if not offsets:
            return
        ordered = sorted(offsets.items())
        rows = [
            Struct(name=topic, partitions=[Struct(index=p.partition, offset=at, metadata="") for p, at in each])
            for topic, each in groupby(ordered, key=lambda item: item[0].topic)
        ]

        def body() -> Struct:
            member, generation, _ = self._membership.credentials()
            return Struct(
                group=self._settings.group,
                generation_or_epoch=generation,
                member=member,
                instance=self._settings.instance,
                topics=rows,
            )

        answer = self._ask(ApiKey.OFFSET_COMMIT, self._membership.credentials()[2], body, patience_s)
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error:
                    hint = "the group is rebalancing; poll, and whoever owns the partition goes on"
                    raise CommitRefused(f"the commit of {topic.name}-{each.index}", each.error, hint)

    def _ask(self, key: ApiKey, version: int, body: Callable[[], Struct], patience_s: float) -> Struct:
        """Ask the coordinator, wherever it is; again while it moves, or while our epoch does."""
        deadline, pause_s = SYSTEM_CLOCK.monotonic() + patience_s, 0.02
        with self._committing:
            while True:
                try:
                    if self._commits is None:
                        self._commits = self._cluster.twin().coordinator(self._settings.group)
                    answer = self._commits.ask(key, version, body())
                except (ConnectionFailed, RequestTimedOut):
                    self._commits = None
                    if SYSTEM_CLOCK.monotonic() >= deadline:
                        raise
                else:
                    errors = {getattr(answer, "error", 0)} | {p.error for t in answer.topics for p in t.partitions}
                    if not errors & _TRY_AGAIN or SYSTEM_CLOCK.monotonic() >= deadline:
                        return answer
                    if errors & set(MOVED):
                        self._commits = None
                self._membership.wake()
                SYSTEM_CLOCK.sleep(pause_s)
                pause_s = min(pause_s * 2, 0.5)

    def _maybe_commit(self) -> None:
        now = SYSTEM_CLOCK.monotonic()
        if self._auto_commit_s is not None and now >= self._commit_at and self._membership.owned:
            self._commit_at = now + self._auto_commit_s
            self._commit_quietly(self._wanted(None), 0.0)

    def _commit_quietly(self, positions: Mapping[TopicPartition, int], patience_s: float = PATIENCE_S) -> None:
        try:
            self._send_commit(positions, patience_s)
        except Kafka2011Error:
            pass  # a refused or lost auto-commit costs duplicates, never messages; the next one makes up for it

    # Rebalances

    def _carry_out(self, change: Change) -> None:
        revoked, assigned = sorted(change.revoked), sorted(change.assigned)
        if revoked:
            if change.lost:
                self._listener.lost(revoked)
            else:
                self._listener.revoked(revoked)
                if self._auto_commit_s is not None:
                    done = self._now_reading().positions
                    self._commit_quietly({p: done[p] for p in revoked if p in done})
            self._now_reading().stop(revoked)
        if assigned:
            reading = self._now_reading()
            offsets = self.committed(assigned)
            for partition in assigned:
                reading.start(partition, self._topics.places[partition], offsets[partition])
        self._membership.applied(change)
        if assigned:
            self._listener.assigned(assigned)

    def _refresh(self) -> None:
        """Look at the topics now and then: they may appear or grow."""
        now = SYSTEM_CLOCK.monotonic()
        if self._membership.wanted and now - self._topics_at >= METADATA_S:
            try:
                self._topics = self._cluster.topics(self._membership.wanted)
            except (ConnectionFailed, RequestTimedOut):
                if not self._topics.brokers:
                    SYSTEM_CLOCK.sleep(_SLICE_S)
                return
            missing = set(self._membership.wanted) - self._topics.ids.keys()
            self._topics_at = now - METADATA_S + 0.5 if missing else now

    def _now_reading(self) -> Reading:
        if self._reading is None:
            addresses = self._brokers
            if isinstance(addresses, str):
                addresses = read_brokers(addresses, self._topics)
            known = {address.broker_id: address for address in addresses}
            self._reading = Reading(known, reset_policy=self._reset, journal=self._journal)
        return self._reading

    def close(self) -> None:
        """Commit (with auto-commit on), leave the group, stop reading. May be called twice."""
        if self._auto_commit_s is not None and self._membership.owned and self._reading is not None:
            self._commit_quietly(self._reading.positions)
        self._auto_commit_s = None
        self._membership.leave()
        if self._reading is not None:
            self._reading.close()
        if self._commits is not None:
            self._commits.close()
        self._cluster.close()

    def __enter__(self) -> Member:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
