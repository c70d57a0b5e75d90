"""The simulated world: a virtual clock, a registry behind slow lines, a log that grows, and a book of all deliveries.

Every run is one thread and one heap of events: the same scenario replays identically. What is real: Algorithm 1,
``Member.life``, commits and fences, and the registry's rules (``zk_registry.fake`` is checked against ZooKeeper).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from consumers.algorithm1.steps import Owned
from consumers.sim.actor import Actor, MakeMember
from consumers.sim.scenario import QUIET_S, Fault, Scenario
from consumers.sim.verdict import Lane, Verdict, overlaps
from kafka2011.clock import ManualClock
from kafka2011.types import BrokerPartition
from zk_registry import paths
from zk_registry.brokers import encode_broker
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.operations import (
    ConnectionLoss,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    NoNode,
    RegistryError,
    Set,
)

_RATE = 4.0
"""Messages each partition receives in a virtual second."""


class World:
    """One run. Thread: one."""

    group, topic = "g", "t"

    def __init__(self, scenario: Scenario, *, transcript: bool = False, members: MakeMember | None = None) -> None:
        """``members`` makes the members of the group; without it they are those of the scenario's edition."""
        self.scenario = scenario
        self.make_member = members
        self.clock = ManualClock()
        self.now = 0.0
        """The clock's time, as a plain field: it is asked for more often than anything else."""
        self._random = Random(f"{scenario.seed}/world")
        self.zookeeper = FakeZooKeeper(
            clock=self.clock,
            schedule=lambda session, notify: self.at(self.latency(), notify),
        )
        self.n_operations = 0
        self.lines: list[str] = []
        self.actors: list[Actor] = []
        self._transcript = transcript
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._n_events = 0
        self._owned_since: dict[tuple[str, Owned], float] = {}
        self._lanes: list[Lane] = []
        self._counts: dict[Owned, bytearray] = {}
        self._created: dict[Owned, float] = {}
        self._by_strangers = self._backwards = 0
        self._stop_at = scenario.duration_s - QUIET_S / 2
        self._broker = self.zookeeper.session(timeout_s=1e9)
        self._spectator = FakeSession(self.zookeeper, 1e9)
        self._spectator.start()
        self._set_up()

    def at(self, delay: float, what: Callable[[], None]) -> None:
        """Let ``what`` happen ``delay`` seconds from now."""
        self._n_events += 1
        heapq.heappush(self._events, (self.now + delay, self._n_events, what))

    def latency(self) -> float:
        """One way through the network: mostly a few milliseconds, sometimes much more."""
        return self._random.expovariate(1 / 0.004) + (0.1 if self._random.random() < 0.01 else 0.0)

    def run(self) -> Verdict:
        """Let everything happen, then judge."""
        for fault in self.scenario.faults:
            self.at(fault.at, lambda fault=fault: self._happen(fault))  # type: ignore[misc]
        while self._events and self._events[0][0] <= self.scenario.duration_s:
            when, _, what = heapq.heappop(self._events)
            self.clock.advance(when - self.now)
            self.now = self.clock.monotonic()
            what()
        return self._judge()

    def _set_up(self) -> None:
        n = self.scenario.n_partitions
        for broker, count in ((0, n // 2), (1, n - n // 2)):
            self._broker.perform(
                Create(paths.broker_id(broker), encode_broker("h", 9092, 0), ephemeral=True, make_parents=True)
            )
            self._announce(broker, count)
        for _ in range(self.scenario.n_consumers):
            self.at(self._random.uniform(0, 0.5), self._join)

    def _announce(self, broker: int, count: int) -> None:
        path = paths.topic_on_broker(self.topic, broker)
        value = str(count).encode()
        if self.scenario.mixed and self._broker.perform(Exists(path)):
            # The broker starts again, as it must to have more partitions; 0.7 notices only that.
            self._broker.perform(Delete(path))
        try:
            self._broker.perform(Set(path, value))
        except NoNode:
            self._broker.perform(Create(path, value, ephemeral=True, make_parents=True))
        for number in range(count):
            owned = Owned(self.topic, BrokerPartition(broker, number))
            self._created.setdefault(owned, self.now)
            self._counts.setdefault(owned, bytearray())

    def _join(self) -> None:
        n = len(self.actors)
        actor = Actor(self, f"c{n}", self.scenario.edition_of(n))
        self.actors.append(actor)
        self.note(actor.name, f"joins ({actor.edition})" if self.scenario.mixed else "joins")

    def _happen(self, fault: Fault) -> None:
        living = [a for a in self.actors if a.alive and not a.member.closing and a.frozen_until <= self.now]
        if fault.length:
            living = [a for a in living if a.edition not in self.scenario.spared]
        if fault.kind == "join":
            if len(living) < 7:
                self._join()
        elif fault.kind == "grow":
            count = sum(1 for owned in self._created if owned.partition.broker_id == 0)
            self._announce(0, count + 1)
            self.note("broker 0", f"has {count + 1} partitions")
        elif len(living) > (0 if fault.length else 1):
            actor = living[fault.target % len(living)]
            self.note(actor.name, fault)
            deed = getattr(actor, fault.kind)
            deed(fault.length) if fault.length else deed()

    # -- the book -------------------------------------------------------------------------------------------------

    def log_end(self, owned: Owned) -> int:
        """How many messages the partition has by now."""
        return int(_RATE * (min(self.now, self._stop_at) - self._created[owned]))

    def delivered(self, owned: Owned, start: int, end: int) -> None:
        """Some application was given messages ``start`` up to ``end``."""
        counts = self._counts[owned]
        if end > len(counts):
            counts.extend(bytes(end - len(counts)))
        for i in range(start, end):
            counts[i] = min(counts[i] + 1, 255)

    def began(self, actor: Actor, owned: Owned) -> None:
        """``actor`` reads ``owned`` from now on."""
        self._owned_since[actor.name, owned] = self.now
        self.note(actor.name, f"reads {owned.partition} from {actor.reading[owned]}")

    def ended(self, actor: Actor, owned: Owned) -> None:
        """``actor`` no longer reads ``owned``."""
        since = self._owned_since.pop((actor.name, owned), None)
        if since is not None:
            self._lanes.append(Lane(actor.name, str(owned.partition), since, self.now))
            self.note(actor.name, f"stops {owned.partition} at {actor.reading[owned]}")

    def perform(self, actor: Actor, step: Any, watcher: Callable[[str], None]) -> Any:
        """An operation reaches the registry: its answer may get lost, and offsets it moves are looked at."""
        applied = True
        if self.scenario.lost_reply_rate and self._random.random() < self.scenario.lost_reply_rate:
            applied = self._random.random() < 0.5
            actor.session.lose_reply(applied=applied)
        if not isinstance(step, (Multi, Create, Set)):
            return actor.session.perform(step, watcher)
        moves = [self._judge_write(actor, write) for write in _offset_writes(step)]
        try:
            return actor.session.perform(step, watcher)
        except ConnectionLoss:
            moves = moves if applied else []
            raise
        except RegistryError:
            moves = []
            raise
        finally:
            if not self.scenario.mixed or actor.edition == "sound":
                # What 0.7 does to offsets is known; in its company only our own are on trial.
                self._by_strangers += sum(stranger for stranger, _ in moves)
                self._backwards += sum(backwards for _, backwards in moves)

    def _owner(self, partition: str) -> int | None:
        """The session that holds a partition's owner node."""
        try:
            path = f"{paths.owners(self.group, self.topic)}/{partition}"
            return int(self._spectator.perform(Get(path)).ephemeral_owner)
        except NoNode:
            return None

    def _judge_write(self, actor: Actor, write: Create | Set) -> tuple[bool, bool]:
        partition = write.path.rpartition("/")[2]
        try:
            stored = int(self._spectator.perform(Get(write.path)).value)
        except NoNode:
            stored = 0
        return self._owner(partition) != actor.session.session_id, int(write.value or b"0") < stored

    def note(self, who: str, what: object, answer: object = None) -> None:
        """Write a line of the transcript."""
        if self._transcript:
            told = "" if answer is None else f"  ->  {answer}"
            self.lines.append(f"{self.now:8.3f}  {who:<9} {what}{told}")

    def _is_settled(self, owned: Owned, living: list[Actor]) -> bool:
        """Whether exactly one living member reads the partition, and the owner node is that member's."""
        sessions = [actor.session.session_id for actor in living if owned in actor.reading]
        return len(sessions) == 1 and sessions[0] == self._owner(str(owned.partition))

    def _judge(self) -> Verdict:
        living = [actor for actor in self.actors if actor.alive and not actor.left]
        read = {owned for actor in living for owned in actor.reading}
        unsettled = sum(1 for owned in self._created if not self._is_settled(owned, living)) if living else 0
        for actor in self.actors:
            for owned in list(actor.reading):
                self.ended(actor, owned)
        lost = sum(
            self.log_end(owned) - sum(1 for c in counts[: self.log_end(owned)] if c)
            for owned, counts in self._counts.items()
        )
        away = {actor.name: actor.away_since for actor in self.actors}
        doubled = overlaps(replace(lane, end=min(lane.end, away[lane.member])) for lane in self._lanes)
        return Verdict(
            seed=self.scenario.seed,
            edition=self.scenario.edition,
            orphans=len(self._created.keys() - read) if living else 0,
            unsettled=unsettled,
            lost=lost,
            non_owner_commits=self._by_strangers,
            backward_commits=self._backwards,
            gave_up=sum(actor.member.counters.gave_up for actor in self.actors),
            duplicates=sum(c - 1 for counts in self._counts.values() for c in counts if c > 1),
            messages=sum(self.log_end(owned) for owned in self._counts),
            rebalances=sum(actor.member.counters.rebalances for actor in self.actors),
            operations=self.n_operations,
            events=self._n_events,
            doubled=len(doubled),
            doubled_s=sum(doubled.values()),
            lanes=tuple(self._lanes),
        )


def _offset_writes(step: Any) -> list[Create | Set]:
    writes = step.operations if isinstance(step, Multi) else (step,)
    return [w for w in writes if isinstance(w, (Create, Set)) and "/offsets/" in w.path and w.value]
