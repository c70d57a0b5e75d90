"""Reads partitions over sockets: runs a ``Fetcher`` with the metadata and the connections of one client.

    with Reader([("127.0.0.1", 9192)], FetchSettings()) as reader:
        reader.want_only(["clicks"])
        reader.assign(TopicPartition("clicks", 0), None)
        reader.step(1.0)
        reader.take(500)

Nothing happens between calls, except that brokers work on what they were asked and the kernel keeps what they send.
Each broker has two connections: one for fetches, which wait at the broker, and one for everything that should not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import Kafka2011Error, RequestTimedOut
from kafka2011.events import Journal
from kafka2011.types import TopicPartition
from since2011.client.backoff import Backoff
from since2011.client.fetch.chunk import ConsumerRecord
from since2011.client.fetch.events import BrokerSilent
from since2011.client.fetch.fetcher import Fetcher, Leader
from since2011.client.fetch.requests import VERSIONS, Ask, list_offsets_body
from since2011.client.fetch.settings import FetchSettings
from since2011.client.metadata import Metadata
from since2011.client.network import Address, Answered, Event, Network
from since2011.wire.codec import ApiKey
from since2011.wire.error_codes import ErrorCode

_METADATA_VERSION = 12
_BESIDE = 1 << 30
"""Added to a broker's number for its second connection."""
_NEXT_CANDIDATE_S = 0.25
_SLICE_S = 0.1


class FoundOffset(NamedTuple):
    """Where a partition was at a time."""

    offset: int
    timestamp: int
    leader_epoch: int


@dataclass(slots=True)
class _Query:
    """Offsets that somebody waits for: which partitions of one request, and what was answered."""

    partitions: list[TopicPartition]
    answers: dict[TopicPartition, FoundOffset | int] = field(default_factory=dict)
    over: bool = False


class Reader:
    """See the module. Thread: one at a time."""

    def __init__(
        self,
        bootstrap: Iterable[Address],
        settings: FetchSettings,
        *,
        clock: Clock = SYSTEM_CLOCK,
        journal: Journal | None = None,
    ) -> None:
        self.settings, self.clock, self._journal = settings, clock, journal
        backoff = Backoff(settings.retry_backoff_ms / 1000, settings.retry_backoff_max_ms / 1000)
        self.metadata = Metadata(
            bootstrap,
            max_age_s=settings.metadata_max_age_ms / 1000,
            backoff=backoff,
            auto_create=settings.allow_auto_create_topics,
        )
        self.network = Network(
            client_id=settings.client_id,
            clock=clock,
            backoff=backoff,
            request_timeout_s=settings.request_timeout_ms / 1000,
        )
        self.fetcher = Fetcher(settings, backoff)
        self.leaders: dict[TopicPartition, Leader] = {}
        """By the newest metadata; none for partitions of topics nobody asked about."""
        self._seen_version = 0
        self._seen_failure: Kafka2011Error | None = None
        self._candidate, self._candidate_since = 0, -math.inf

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up everywhere."""
        self.network.close()

    # -- metadata -------------------------------------------------------------------------------------------------

    def want_only(self, topics: Iterable[str] | None) -> None:
        """The topics that are read, or all there are."""
        self.metadata.want_only(topics)

    def partitions_for(self, topic: str, timeout_s: float) -> list[TopicPartition]:
        """The partitions of a topic; raises RequestTimedOut if nobody tells in time."""
        self.metadata.want(topic)
        deadline = self.clock.monotonic() + timeout_s
        while topic not in self.metadata.topics:
            self._wait_for_brokers(deadline, f"the metadata of {topic}", self.metadata.errors.get(topic))
        return [TopicPartition(topic, number) for number in range(len(self.metadata.topics[topic].leaders))]

    # -- reading --------------------------------------------------------------------------------------------------

    def step(self, wait_s: float) -> None:
        """Send what is due and take in what has come, after ``wait_s`` at most."""
        now = self.clock.monotonic()
        self._ask_metadata(now)
        for ask in self.fetcher.due(now, self._can_send):
            self.network.send(_lane(ask.broker, ask.key), ask.key, VERSIONS[ask.key], ask.body, ask)
        wakes = [at for at in (self.fetcher.next_at(now), self.metadata.due_at(now)) if at is not None]
        limit = min((at - now for at in wakes), default=math.inf)
        for event in self.network.poll(max(0.0, min(wait_s, limit))):
            self._take_in(event)
        self._notice_failures()
        if self.fetcher.wants_metadata:
            self.fetcher.wants_metadata = False
            self.metadata.need_update()

    def take(self, at_most: int) -> list[ConsumerRecord]:
        """Up to so many records that have come; raises FetchError for a partition the application must decide about."""
        return self.fetcher.take(at_most)

    # -- look-ups -------------------------------------------------------------------------------------------------

    def offsets_at(
        self, times: Mapping[TopicPartition, int], timeout_s: float
    ) -> dict[TopicPartition, FoundOffset | None]:
        """The first offsets at or after these times; EARLIEST and LATEST are times too. None: nothing is that late.

        Raises RequestTimedOut if a leader does not tell in time.
        """
        deadline = self.clock.monotonic() + timeout_s
        found: dict[TopicPartition, FoundOffset | None] = {}
        for topic in {partition.topic for partition in times}:
            self.metadata.want(topic)
        queries: list[_Query] = []
        not_before = 0.0
        error: int | None = None
        while len(found) < len(times):
            under_way = {partition for query in queries for partition in query.partitions}
            left = [partition for partition in times if partition not in found and partition not in under_way]
            if left and self.clock.monotonic() >= not_before:
                queries += self._query(left, times)
            self._wait_for_brokers(deadline, f"offsets of {', '.join(map(str, left or under_way))}", error)
            for query in [query for query in queries if query.over]:
                queries.remove(query)
                for partition, answer in query.answers.items():
                    if isinstance(answer, FoundOffset):
                        found[partition] = answer if answer.offset >= 0 else None
                    else:
                        error = answer
                if len(query.answers) < len(query.partitions) or error is not None:
                    not_before = self.clock.monotonic() + self.settings.retry_backoff_ms / 1000
                    self.metadata.need_update()
        return found

    def _query(self, left: list[TopicPartition], times: Mapping[TopicPartition, int]) -> list[_Query]:
        by_broker: dict[int, list[TopicPartition]] = {}
        for partition in left:
            leader = self.leaders.get(partition)
            if leader is not None and leader.broker_id >= 0 and self._can_send(leader.broker_id, ApiKey.LIST_OFFSETS):
                by_broker.setdefault(leader.broker_id, []).append(partition)
            elif leader is None or leader.broker_id < 0:
                self.metadata.need_update()
        sent = []
        for broker, partitions in by_broker.items():
            query = _Query(partitions)
            rows = {partition: (times[partition], self.leaders[partition].epoch) for partition in partitions}
            body = list_offsets_body(rows, self.settings.isolation)
            key = ApiKey.LIST_OFFSETS
            self.network.send(_lane(broker, key), key, VERSIONS[key], body, query)
            sent.append(query)
        return sent

    def _wait_for_brokers(self, deadline: float, what: str, error: int | None) -> None:
        left = deadline - self.clock.monotonic()
        if left <= 0:
            why = f": {ErrorCode(error).name}" if error else ""
            if not why and self.network.last_failure is not None:
                why = f": {self.network.last_failure}"
            raise RequestTimedOut(f"{what} did not come in time{why}; is there a leader?")
        self.step(min(left, _SLICE_S))

    # -- the wire -------------------------------------------------------------------------------------------------

    def _can_send(self, broker: int, key: ApiKey) -> bool:
        address = self.metadata.brokers.get(broker)
        return address is not None and self.network.ready(_lane(broker, key), address)

    def _ask_metadata(self, now: float) -> None:
        if self.metadata.due_at(now) > now:
            return
        brokers = list(self.metadata.brokers.items())
        # One after the other: a client that opens connections to all, only to ask one thing, is a nuisance.
        if now - self._candidate_since > _NEXT_CANDIDATE_S:
            self._candidate, self._candidate_since = self._candidate + 1, now
        broker, address = brokers[-1 - self._candidate % len(brokers)]
        node = _lane(broker, ApiKey.METADATA)
        if self.network.ready(node, address):
            body = self.metadata.question()
            self.network.send(node, ApiKey.METADATA, _METADATA_VERSION, body, ApiKey.METADATA)
            self._candidate_since = now

    def _take_in(self, event: Event) -> None:
        now = self.clock.monotonic()
        tag = event.tag
        if isinstance(tag, Ask):
            if isinstance(event, Answered):
                self.fetcher.answered(tag, event.body, now)
                for told in self.fetcher.take_events():
                    if self._journal is not None:
                        self._journal.emit(told)
            else:
                self.fetcher.failed(tag, now)
        elif isinstance(tag, _Query):
            tag.over = True
            if isinstance(event, Answered):
                for topic in event.body.topics:
                    for row in topic.partitions:
                        answer = row.error or FoundOffset(row.offset, row.timestamp, row.leader_epoch)
                        tag.answers[TopicPartition(topic.name, row.index)] = answer
        elif isinstance(event, Answered):
            self.metadata.apply(event.body, now)
            self._take_leaders()
        else:
            self.metadata.failed(now)
            self._candidate_since = -math.inf

    def _take_leaders(self) -> None:
        self.leaders = {
            TopicPartition(name, number): Leader(broker, epoch)
            for name, places in self.metadata.topics.items()
            for number, (broker, epoch) in enumerate(zip(places.leaders, places.epochs, strict=True))
        }
        self.fetcher.set_leaders(self.leaders)

    def _notice_failures(self) -> None:
        """A broker that cannot be reached leads nothing for long: ask who does."""
        failure = self.network.last_failure
        if failure is not None and failure is not self._seen_failure:
            self.metadata.need_update()
            if self._journal is not None and str(failure) != str(self._seen_failure):
                self._journal.emit(BrokerSilent(reason=str(failure)))
        self._seen_failure = failure


def _lane(broker: int, key: ApiKey) -> int:
    """The connection a request goes over."""
    return broker if key is ApiKey.FETCH or broker < 0 else broker + _BESIDE


def group_by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Topics with the numbers of their partitions, sorted, as most requests want them."""
    return [
        (topic, [one.partition for one in each]) for topic, each in groupby(sorted(partitions), key=lambda p: p.topic)
    ]
