"""What a consumer reads and why: partitions it named itself, or the share a group gives it.

    nothing -> assign -> exactly those            nothing -> subscribe -> what rebalances give and take
    either -> unsubscribe -> nothing

A rebalance is carried out in the application's poll, in the order of Kafka's own consumers: what goes is committed
(with auto-commit), then the listener hears ``revoked``, then it is read no more; what comes gets its committed offset,
then is confirmed to the group, then the listener hears ``assigned``. What was lost is not committed: it is somebody
else's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from consumers.group_protocol.member.classic import ClassicMembership
from consumers.group_protocol.member.kip848 import ConsumerMembership
from consumers.group_protocol.member.listener import Listener
from consumers.group_protocol.member.membership import Change, KnownTopics, Membership
from consumers.group_protocol.member.settings import ConsumerSettings
from kafka2011.clock import Clock
from kafka2011.errors import Kafka2011Error
from kafka2011.types import TopicPartition
from since2011.client.cluster import Cluster
from since2011.client.fetch.reader import Reader
from since2011.client.group_metadata import OffsetAndMetadata

_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
Committed = Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, OffsetAndMetadata]]


class IllegalUse(Kafka2011Error):
    """A call that cannot be meant: the program has to be changed."""


class Subscriptions:
    """See the module. Thread: the application's."""

    def __init__(
        self,
        settings: ConsumerSettings,
        cluster: Cluster,
        reader: Reader,
        *,
        committed: Committed,
        commit: Callable[[], None],
        clock: Clock,
    ) -> None:
        """``committed`` looks up stored offsets, ``commit`` stores the positions before partitions go."""
        self._settings, self._cluster, self._reader, self._clock = settings, cluster, reader, clock
        self._committed, self._commit = committed, commit
        self.membership: Membership | None = None
        self.topics: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None
        self._listener = Listener()
        self._known, self._known_version = KnownTopics(), -1
        self._change: Change | None = None
        """Of a rebalance, until it is carried out: if an offset cannot be looked up, the next poll tries again."""
        self._to_begin: set[TopicPartition] = set()
        """Assigned by hand, and the committed offset is still to be looked up."""

    @property
    def in_group(self) -> bool:
        """Whether partitions come from a group."""
        return self.membership is not None

    @property
    def is_joining(self) -> bool:
        """Whether the group has given us nothing yet."""
        return self.membership is not None and not self.membership.owned

    # -- what the application wants -------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] | str | re.Pattern[str], listener: Listener | None) -> None:
        """Take part in the group's share of these topics."""
        if self._reader.fetcher.positions and self.membership is None:
            raise IllegalUse("partitions were assigned by hand; unsubscribe first")
        self._listener = listener or self._listener
        if isinstance(topics, str):
            self._pattern = re.compile(topics) if topics.startswith("^") else None
            topics = [topics]
        elif isinstance(topics, re.Pattern):
            self._pattern, topics = topics, []
        else:
            self._pattern = None
        self._known_version = -1
        if self._pattern is None:
            self._want(sorted(set(topics)))
        else:
            self._reader.want_only(None)
        if self.membership is None:
            kind = ClassicMembership if self._settings.group_protocol == "classic" else ConsumerMembership
            self.membership = kind(self._settings.membership(), self._cluster, self._clock)
            self.membership.topics = lambda: self._known
        self.membership.wanted = self.topics
        self.membership.rejoin()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these."""
        if self.membership is not None:
            raise IllegalUse("topics were subscribed to; unsubscribe first")
        wanted = set(partitions)
        read = self._reader.fetcher.positions
        self._reader.fetcher.remove([partition for partition in read if partition not in wanted])
        self._to_begin = {partition for partition in wanted if partition not in read}
        self._want(sorted({partition.topic for partition in wanted}))
        if self._settings.group_id is None:
            self._begin(self._to_begin, {})
            self._to_begin = set()

    def unsubscribe(self) -> None:
        """Let go of everything; leave the group."""
        self.close()
        self._reader.fetcher.remove(list(self._reader.fetcher.positions))
        self._to_begin, self._pattern = set(), None
        self._want([])

    def _want(self, topics: list[str]) -> None:
        self.topics = tuple(topics)
        self._reader.want_only(topics)

    # -- in the poll ----------------------------------------------------------------------------------------------

    def polled(self) -> None:
        """The application is alive."""
        if self.membership is not None:
            self.membership.polled()

    def advance(self, wait_s: float) -> bool:
        """Do what is due; whether there may be more."""
        if self._to_begin:
            self._begin(self._to_begin, self._committed(self._to_begin))
            self._to_begin = set()
        if self.membership is None:
            return False
        self._look_at_topics(self.membership)
        if not self._are_topics_known():
            return False
        if self._change is None:
            self._change = self.membership.advance(wait_s if self.is_joining else 0.0)
        if self._change is None:
            return False
        self._carry_out(self.membership, self._change)
        return True

    def _carry_out(self, membership: Membership, change: Change) -> None:
        assigned = sorted(change.assigned)
        # Looked up first: if it cannot be, the next poll finds everything as it was.
        offsets = self._committed(assigned) if assigned else {}
        self._let_go(sorted(change.revoked), lost=change.lost)
        self._begin(assigned, offsets)
        self._change = None
        membership.applied(change)
        if assigned:
            self._listener.assigned(assigned)

    def _let_go(self, revoked: list[TopicPartition], *, lost: bool) -> None:
        if not revoked:
            return
        try:
            if lost:
                self._listener.lost(revoked)
            else:
                self._commit()
                self._listener.revoked(revoked)
        finally:
            self._reader.fetcher.remove(revoked)

    def _begin(self, partitions: Iterable[TopicPartition], offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for partition in partitions:
            self._reader.fetcher.assign(partition, offsets.get(partition))

    def _look_at_topics(self, membership: Membership) -> None:
        """Topics appear and grow; a pattern may match more than it did."""
        metadata = self._reader.metadata
        if metadata.version == self._known_version:
            return
        self._known_version = metadata.version
        if self._pattern is not None:
            matching = (name for name in metadata.topics if self._pattern.match(name) and name not in _INTERNAL)
            topics = tuple(sorted(matching))
            if topics != self.topics:
                self.topics = membership.wanted = topics
                membership.rejoin()
        wanted = {name: metadata.topics[name] for name in self.topics if name in metadata.topics}
        self._known = KnownTopics(
            {name: len(places.leaders) for name, places in wanted.items()},
            {name: places.topic_id for name, places in wanted.items()},
        )

    def _are_topics_known(self) -> bool:
        """Whether the metadata has told of every topic, if only that it is not there: before that, joining is early."""
        metadata = self._reader.metadata
        return metadata.version > 0 and all(name in metadata.topics or name in metadata.errors for name in self.topics)

    # -- the end --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Commit, tell the listener, leave the group."""
        membership = self.membership
        if membership is None:
            self._commit()
            return
        try:
            self._let_go(sorted(membership.owned), lost=False)
        finally:
            self.membership = None
            self._change = None
            membership.leave()
