"""The world of a modern group: the real coordinator on a virtual clock, modelled members, a book of all deliveries.

See docs/group-protocol.md. Same scenarios, same latencies, same application as the world of Algorithm 1
(``consumers.sim.world``), so that only the coordination differs. What is real: the coordinator with all its timers, the
assignors, the subscription bytes. What is modelled: the client, the lines, the application.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

from consumers.group_protocol.coordinator.requests import ConsumerGroupHeartbeat, OffsetCommit, Request
from consumers.group_protocol.coordinator.results import (
    ConsumerGroupHeartbeatResult,
    HeartbeatResult,
    OffsetCommitResult,
    Reply,
    Response,
)
from consumers.group_protocol.coordinator.service import GroupCoordinator
from consumers.group_protocol.coordinator.settings import GroupSettings, InTransaction, Record
from consumers.sim.scenario import QUIET_S, SESSION_S, Fault, Scenario
from consumers.sim.verdict import Lane
from kafka2011.clock import ManualClock
from kafka2011.events import Journal
from kafka2011.types import TopicPartition
from since2011.topics.cluster import topic_id

if TYPE_CHECKING:
    from consumers.sim.compare.member import ModelMember

Answered = Callable[[Response | None], None]

RATE = 4.0
"""Messages each partition receives in a virtual second."""
HEARTBEAT_S = 0.5
REBALANCE_S = 10.0
TOPIC, GROUP = "t", "g"
_SETTINGS = GroupSettings(
    min_session_ms=1,
    initial_rebalance_delay_ms=500,
    consumer_session_ms=int(SESSION_S * 1000),
    consumer_heartbeat_ms=int(HEARTBEAT_S * 1000),
)


class _InstantLog:
    """Durable at once: disks are not what is compared."""

    def append(self, group: str, records: Sequence[Record], transaction: InTransaction | None = None) -> None:
        return None

    def is_available(self, group: str) -> bool:
        return True


def _is_idle(request: Request, response: Response) -> bool:
    """A heartbeat that told nothing and was told nothing: the price of being in a group, not of a rebalance."""
    if isinstance(response, HeartbeatResult):
        return not response.error
    if isinstance(request, ConsumerGroupHeartbeat) and isinstance(response, ConsumerGroupHeartbeatResult):
        told = request.owned is not None or request.epoch <= 0
        return not told and not response.error and response.assignment is None and response.epoch == request.epoch
    return False


class Line:
    """One direction of a connection: what is sent first arrives first."""

    def __init__(self) -> None:
        self._last = 0.0

    def delay(self, now: float, latency: float) -> float:
        """How long this takes to arrive."""
        self._last = max(self._last, now + latency)
        return self._last - now


class GroupWorld:
    """One run of one protocol. Thread: one."""

    def __init__(self, scenario: Scenario, make: Callable[[GroupWorld, str], ModelMember]) -> None:
        self.scenario = scenario
        self.clock = ManualClock()
        self.n_partitions = scenario.n_partitions
        self.members: list[ModelMember] = []
        self.requests: Counter[str] = Counter()
        self.lanes: list[Lane] = []
        self.refused_commits = 0
        self.seen: Callable[[Request], None] = lambda _request: None
        """Called before the coordinator handles a request."""
        ids = count(1)
        self.coordinator = GroupCoordinator(
            _SETTINGS,
            _InstantLog(),
            self,
            clock=self.clock,
            journal=Journal(clock=self.clock, keep=1),
            new_id=lambda: f"{next(ids):04d}",
        )
        self._make = make
        self._random = Random(f"{scenario.seed}/world")
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._n_events = 0
        self._waiting: dict[int, tuple[ModelMember, Request, Answered]] = {}
        self._tokens = count(1)
        self._since: dict[tuple[str, TopicPartition], float] = {}
        self._created = {TopicPartition(TOPIC, n): 0.0 for n in range(scenario.n_partitions)}
        self._counts: dict[TopicPartition, bytearray] = {}
        self._stop_at = scenario.duration_s - QUIET_S / 2

    @property
    def now(self) -> float:
        return self.clock.monotonic()

    def partition_count(self, topic: str) -> int | None:
        """What the coordinator asks of the topics."""
        return self.n_partitions if topic == TOPIC else None

    def topic_id(self, topic: str) -> UUID:
        """The same."""
        return topic_id(topic)

    def topic_name(self, number: UUID) -> str | None:
        """The same."""
        return TOPIC if number == topic_id(TOPIC) else None

    def at(self, delay: float, what: Callable[[], None]) -> None:
        """Let ``what`` happen ``delay`` seconds from now."""
        self._n_events += 1
        heapq.heappush(self._events, (self.now + delay, self._n_events, what))

    def latency(self) -> float:
        """One way through the network: mostly a few milliseconds, sometimes much more."""
        return self._random.expovariate(1 / 0.004) + (0.1 if self._random.random() < 0.01 else 0.0)

    def run(self) -> None:
        """Let everything happen."""
        for _ in range(self.scenario.n_consumers):
            self.at(self._random.uniform(0, 0.5), self._join)
        for fault in self.scenario.faults:
            self.at(fault.at, lambda fault=fault: self._happen(fault))  # type: ignore[misc]
        while self._events and self._events[0][0] <= self.scenario.duration_s:
            when, _, what = heapq.heappop(self._events)
            self.clock.advance(when - self.now)
            what()
        for member in self.members:
            for partition in list(member.reading):
                self.ended(member, partition)

    # Requests

    def send(self, member: ModelMember, request: Request, then: Answered) -> None:
        """Carry a request to the coordinator and its answer back; None when the connection broke on the way."""
        self.at(member.up.delay(self.now, self.latency()), lambda: self._arrive(member, request, then))

    def _arrive(self, member: ModelMember, request: Request, then: Answered) -> None:
        if member.is_cut or self._is_lost():
            self._break(member, then)
            return
        token = next(self._tokens)
        self._waiting[token] = (member, request, then)
        self.seen(request)
        self._deliver(self.coordinator.handle(token, request, self.now))

    def _deliver(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            assert isinstance(reply.token, int)
            member, request, then = self._waiting.pop(reply.token)
            self.requests["idle" if _is_idle(request, reply.response) else type(request).__name__] += 1
            if isinstance(request, OffsetCommit) and isinstance(reply.response, OffsetCommitResult):
                self.refused_commits += any(each.error for each in reply.response.partitions)
            if member.is_cut or self._is_lost():
                self._break(member, then)
            else:
                delay = member.down.delay(self.now, self.latency())
                self.at(delay, lambda then=then, answer=reply.response: then(answer))  # type: ignore[misc]
        deadline = self.coordinator.next_deadline()
        if deadline is not None and deadline < self.scenario.duration_s:
            self.at(max(0.0, deadline - self.now), self._tick)

    def _break(self, member: ModelMember, then: Answered) -> None:
        """The client notices when it next can reach anyone."""
        self.at(max(0.0, member.cut_until - self.now) + self.latency(), lambda: then(None))

    def _tick(self) -> None:
        deadline = self.coordinator.next_deadline()
        if deadline is not None and deadline <= self.now:
            self._deliver(self.coordinator.tick(self.now))

    def _is_lost(self) -> bool:
        return self.scenario.lost_reply_rate > 0 and self._random.random() < self.scenario.lost_reply_rate / 2

    # Faults

    def _join(self) -> None:
        self.members.append(self._make(self, f"c{len(self.members)}"))

    def _happen(self, fault: Fault) -> None:
        living = [m for m in self.members if m.alive and not m.leaving and m.frozen_until <= self.now]
        if fault.kind == "join":
            self._join()
        elif fault.kind == "grow":
            self._created[TopicPartition(TOPIC, self.n_partitions)] = self.now
            self.n_partitions += 1
        elif len(living) > (0 if fault.length else 1):
            deed = getattr(living[fault.target % len(living)], fault.kind)
            deed(fault.length) if fault.length else deed()

    # The book

    def log_end(self, partition: TopicPartition) -> int:
        """How many messages the partition has by now."""
        return int(RATE * (min(self.now, self._stop_at) - self._created[partition]))

    def delivered(self, partition: TopicPartition, start: int, end: int) -> None:
        """Some application was given messages ``start`` up to ``end``."""
        counts = self._counts.setdefault(partition, bytearray())
        counts.extend(bytes(max(0, end - len(counts))))
        for i in range(start, end):
            counts[i] = min(counts[i] + 1, 255)

    def began(self, member: ModelMember, partition: TopicPartition) -> None:
        """``member`` reads ``partition`` from now on."""
        self._since[member.name, partition] = self.now

    def ended(self, member: ModelMember, partition: TopicPartition) -> None:
        """``member`` no longer reads ``partition``."""
        since = self._since.pop((member.name, partition), None)
        if since is not None:
            self.lanes.append(Lane(member.name, str(partition.partition), since, self.now))

    @property
    def messages(self) -> int:
        return sum(self.log_end(partition) for partition in self._created)

    @property
    def duplicates(self) -> int:
        return sum(c - 1 for counts in self._counts.values() for c in counts if c > 1)

    @property
    def lost(self) -> int:
        """Messages no application was ever given."""
        seen = {p: sum(1 for c in counts[: self.log_end(p)] if c) for p, counts in self._counts.items()}
        return self.messages - sum(seen.values())
