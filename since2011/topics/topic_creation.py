"""Topics that modern clients ask for: limits first, then the disk, off the reactor, then the announcement.

    asked for   name, room (max.topics, max.partitions) and rate are checked; who is refused leaves nothing behind
    under way   one write of the partition counts for the whole request, then one directory each, in a thread
    there       announced in the reactor: the view of the cluster has it, ZooKeeper is told

Paper: §3 (topics). See docs/modern-port.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from kafka2011.errors import Kafka2011Error, LogFull
from since2011.topics.events import TopicsRefused
from since2011.topics.topic_counts import TopicCounts
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

Errors = dict[str, Kafka2011Error]


class TopicCreation:
    """Thread: reactor; the disk's part is done in others."""

    def __init__(self, broker: Broker, counts: TopicCounts) -> None:
        self._broker, self._counts = broker, counts
        self._under_way: dict[str, int] = {}

    def is_under_way(self, topic: str) -> bool:
        """Whether somebody is having it created now."""
        return topic in self._under_way

    def create(self, wanted: Mapping[str, int | None], address: str) -> Deferred[Errors]:
        """Create these, each with so many partitions (None: as configured); fires with why some could not be.

        Going on does not depend on whoever asked: it may have hung up long before the disk is done.
        """
        errors: Errors = {}
        chosen: dict[str, int] = {}
        admitted = []
        n_waiting = sum(self._under_way.values())
        for topic, count in wanted.items():
            configured = self._broker.store.partition_count(topic)
            n_partitions = configured if count is None else count
            try:
                if self.is_under_way(topic):
                    raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic} is being created; ask again in a moment")
                self._broker.store.check_room(len(self._under_way) + 1, n_waiting + n_partitions)
                if not self._broker.creations.take(address):
                    raise Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, self._broker.creations.sentence)
            except Kafka2011Error as error:
                errors[topic] = error
                continue
            if n_partitions != configured:
                chosen[topic] = n_partitions
            self._under_way[topic] = n_partitions
            n_waiting += n_partitions
            admitted.append(topic)
        if errors:
            some = next(iter(errors.values()))
            self._broker.rate_limit.emit("topics", TopicsRefused(peer=address, n_topics=len(errors), reason=str(some)))
        done: Deferred[Errors] = Deferred(lambda _: None)
        if not admitted:
            done.callback(errors)
            return done

        def made(result: tuple[list[str], Errors] | Failure) -> Failure | None:
            for topic in admitted:
                del self._under_way[topic]
            if isinstance(result, Failure):
                if not done.called:
                    done.errback(result)
                return None
            new, failed = result
            for topic in new:
                self._broker.store.announce(topic)
            if not done.called:
                done.callback(errors | failed)
            return None

        deferToThread(self._make, admitted, chosen).addBoth(made)
        return done

    def _make(self, topics: list[str], chosen: dict[str, int]) -> tuple[list[str], Errors]:
        """In a thread: the topics that are new now, and why others are not."""
        errors: Errors = {}
        new = []
        try:
            self._counts.choose(chosen)
        except OSError as error:
            errors = {topic: LogFull(f"{topic} is not created: {error}; try again later") for topic in chosen}
        for topic in topics:
            if topic in errors:
                continue
            try:
                _, is_new = self._broker.store.create(topic, 0)
                if is_new:
                    new.append(topic)
            except Kafka2011Error as error:
                errors[topic] = error
        self._counts.forget(chosen.keys() & errors.keys())
        return new, errors
