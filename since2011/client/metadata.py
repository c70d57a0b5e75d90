"""What a client knows of the cluster, and when it has to ask again. No I/O: bodies of Metadata in, questions out.

A client asks when it meets a topic it does not know, when a broker says that it does not lead what it was asked for,
when a connection is lost, and otherwise every ``metadata.max.age.ms``. An answer may be older than what is known (a
broker that was away repeats what it remembers): of two leaders of one partition the one with the larger epoch is right.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from since2011.client.backoff import Backoff
from since2011.wire.codec import NO_UUID, Struct
from since2011.wire.error_codes import ErrorCode

NO_LEADER = -1


@dataclass(slots=True)
class TopicPlaces:
    """Where the partitions of one topic are led. The list is by partition."""

    topic_id: uuid.UUID
    leaders: list[int]
    epochs: list[int]
    available: list[int] = field(default_factory=list)
    """The partitions that have a leader."""


class Metadata:
    """A cache of Metadata answers, and the rule when to ask. Thread: one, or under its owner's lock."""

    def __init__(
        self, bootstrap: Iterable[tuple[str, int]], *, max_age_s: float, backoff: Backoff, auto_create: bool = True
    ) -> None:
        self.bootstrap = {-1 - number: address for number, address in enumerate(bootstrap)}
        """The addresses a client is given, under numbers no broker has."""
        self.brokers: dict[int, tuple[str, int]] = dict(self.bootstrap)
        self.topics: dict[str, TopicPlaces] = {}
        self.errors: dict[str, ErrorCode] = {}
        """Topics that were asked for and cannot be written to, and why."""
        self.version = 0
        """Raised by each answer."""
        self._wanted: dict[str, None] | None = {}
        """None for all topics."""
        self._auto_create = auto_create
        self._max_age_s, self._backoff = max_age_s, backoff
        self._asked = False
        self._needed = True
        self._failures = 0
        self._not_before = 0.0
        self._last = -math.inf

    def want(self, topic: str) -> None:
        """Ask for this topic from now on."""
        if self._wanted is not None and topic not in self._wanted:
            self._wanted[topic] = None
            self._needed = True

    def want_only(self, topics: Iterable[str] | None) -> None:
        """Ask for these from now on, or for all there are; forget the others."""
        wanted = None if topics is None else dict.fromkeys(topics)
        if wanted != self._wanted:
            self._wanted, self._needed = wanted, True
        if wanted is not None:
            self.topics = {name: places for name, places in self.topics.items() if name in wanted}
            self.errors = {name: error for name, error in self.errors.items() if name in wanted}

    def need_update(self) -> None:
        """Something was not where it should be: ask soon."""
        self._needed = True

    def due_at(self, now: float) -> float:
        """When to ask next; infinite while an answer is awaited."""
        if self._asked:
            return math.inf
        return max(self._not_before, now if self._needed else self._last + self._max_age_s)

    def question(self) -> Struct:
        """The body of a Metadata request; an answer or ``failed`` must follow."""
        self._asked, self._needed = True, False
        wanted = None if self._wanted is None else [Struct(topic_id=NO_UUID, name=name) for name in self._wanted]
        return Struct(topics=wanted, auto_create=self._auto_create)

    def failed(self, now: float) -> None:
        """Nobody answered."""
        self._asked, self._needed = False, True
        self._failures += 1
        self._not_before = now + self._backoff.after(self._failures)

    def apply(self, answer: Struct, now: float) -> None:
        """Take over what a broker says."""
        self._asked = False
        self._last = now
        self.version += 1
        if answer.brokers:
            self.brokers = self.bootstrap | {one.id: (one.host, one.port) for one in answer.brokers}
        incomplete = False
        if self._wanted is None:
            there = {topic.name for topic in answer.topics}
            self.topics = {name: places for name, places in self.topics.items() if name in there}
        for topic in answer.topics:
            if topic.name is None:
                continue
            if topic.error:
                incomplete = True
                self.errors[topic.name] = _known(topic.error)
                if topic.error in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                    self.topics.pop(topic.name, None)
                continue
            self.errors.pop(topic.name, None)
            places = self._places(topic)
            self.topics[topic.name] = places
            incomplete |= len(places.available) < len(places.leaders)
        # A topic that is being made, or a partition being given a leader: ask again, not at once.
        self._failures = self._failures + 1 if incomplete else 0
        self._needed |= incomplete
        self._not_before = now + (self._backoff.after(self._failures) if incomplete else self._backoff.first_s)

    def _places(self, topic: Struct) -> TopicPlaces:
        before = self.topics.get(topic.name)
        if before is not None and before.topic_id != topic.topic_id:
            before = None  # deleted and made again: its epochs begin anew
        n = 1 + max((one.index for one in topic.partitions), default=-1)
        places = TopicPlaces(topic.topic_id, [NO_LEADER] * n, [-1] * n)
        for one in topic.partitions:
            leader, epoch = one.leader, one.leader_epoch
            if before is not None and one.index < len(before.leaders) and before.epochs[one.index] > epoch:
                leader, epoch = before.leaders[one.index], before.epochs[one.index]
            places.leaders[one.index] = leader if leader in self.brokers else NO_LEADER
            places.epochs[one.index] = epoch
        places.available = [index for index, leader in enumerate(places.leaders) if leader != NO_LEADER]
        return places


def _known(error: int) -> ErrorCode:
    return ErrorCode(error) if error in ErrorCode._value2member_map_ else ErrorCode.UNKNOWN_SERVER_ERROR
