"""A registry in memory with brokers and a topic, and a driver that performs a member's steps one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from types import ModuleType
from typing import Any

import pytest

from consumers.algorithm1.editions import SOUND, Edition
from consumers.algorithm1.member import Member
from consumers.algorithm1.steps import NewSession, Owned, Progress, Start, Step, Stop, Wait
from kafka2011.clock import ManualClock
from kafka2011.events import Event, Journal
from kafka2011.types import BrokerPartition
from tests.walkers import WALKERS, use
from zk_registry import paths
from zk_registry.brokers import encode_broker
from zk_registry.consumers import Subscription
from zk_registry.fake import FakeZooKeeper
from zk_registry.operations import Create, Get, NoNode, RegistryError, Set


@pytest.fixture(params=WALKERS, scope="module")
def walker(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """Message sets are walked by the pure code, then by the compiled one (issue 23)."""
    yield from use(request.param)


class Cluster:
    """A fake ZooKeeper with one broker and one topic."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.zookeeper = FakeZooKeeper(clock=self.clock)
        self.registry = self.zookeeper.session()
        self.registry.perform(
            Create(paths.broker_id(0), encode_broker("h", 9092, 0), ephemeral=True, make_parents=True)
        )

    def topic(self, name: str, n_partitions: int) -> None:
        path = paths.topic_on_broker(name, 0)
        try:
            self.registry.perform(Set(path, b"%d" % n_partitions))
        except NoNode:
            self.registry.perform(Create(path, b"%d" % n_partitions, ephemeral=True, make_parents=True))

    def value(self, path: str) -> bytes | None:
        try:
            found: bytes = self.registry.perform(Get(path)).value
            return found
        except NoNode:
            return None

    def owner(self, owned: Owned, group: str = "g") -> str | None:
        value = self.value(paths.owner(group, owned.topic, owned.partition))
        return None if value is None else value.decode()

    def offset(self, owned: Owned, group: str = "g") -> int | None:
        value = self.value(paths.offset(group, owned.topic, owned.partition))
        return None if value is None else int(value)

    def store_offset(self, owned: Owned, value: bytes, group: str = "g") -> None:
        self.registry.perform(Create(paths.offset(group, owned.topic, owned.partition), value, make_parents=True))


@dataclass
class Driven:
    """A member whose steps the test performs; its application is a dict of positions."""

    cluster: Cluster
    name: str
    edition: Edition = SOUND
    topics: dict[str, int] = field(default_factory=lambda: {"t": 1})
    autocommit_s: float | None = 10.0

    def __post_init__(self) -> None:
        self.session = self.cluster.zookeeper.session()
        self.journal = Journal(clock=self.cluster.clock)
        self.births = 0
        self.reading: dict[Owned, int | None] = {}
        self.steps: list[Step] = []
        self.member = Member(
            "g",
            Subscription.fixed(self.topics),
            new_id=self._new_id,
            session_id=lambda: self.session.session_id,
            clock=self.cluster.clock,
            journal=self.journal,
            random=Random(0),
            edition=self.edition,
            autocommit_s=self.autocommit_s,
        )
        self.life = self.member.life()
        self._answer: Any = None
        self._error: RegistryError | None = None

    def _new_id(self) -> str:
        self.births += 1
        return f"g_{self.name}-{self.births}"

    def step(self) -> Step:
        """Let the member go on to its next step and perform it."""
        step = self.life.send(self._answer) if self._error is None else self.life.throw(self._error)
        self.steps.append(step)
        self._answer = self._error = None
        match step:
            case Stop(partitions):
                stopped = [o for o in self.reading if partitions is None or o in partitions]
                positions = {o: self.reading.pop(o) for o in stopped}
                self._answer = {o: at for o, at in positions.items() if at is not None}
            case Start(claims):
                self.reading |= {claim.owned: claim.offset for claim in claims}
            case Progress():
                self._answer = {o: at for o, at in self.reading.items() if at is not None}
            case Wait(seconds):
                self.cluster.clock.advance(seconds)
            case NewSession():
                self.session.resume()
            case _:
                try:
                    self._answer = self.session.perform(step, self._watched)
                except RegistryError as error:
                    self._error = error
        return step

    def until(self, wanted: Callable[[Step], bool], at_most: int = 500) -> Step:
        """Perform steps until one is wanted; it has been performed too."""
        for _ in range(at_most):
            step = self.step()
            if wanted(step):
                return step
        raise AssertionError(f"not within {at_most} steps: {self.steps[-10:]}")

    def settle(self) -> None:
        """Until the member waits for a change."""
        self.until(lambda step: isinstance(step, Wait) and "change" in step.why)

    def leave(self) -> None:
        self.member.closing = True
        with pytest.raises(StopIteration):
            for _ in range(500):
                self.step()
        self.session.close()
        self.cluster.zookeeper.deliver()

    def events(self, kind: type[Event]) -> list[Event]:
        return [entry.event for entry in self.journal.since() if isinstance(entry.event, kind)]

    def _watched(self, path: str) -> None:
        self.member.noticed(path)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    world = Cluster()
    world.topic("t", 4)
    yield world


def part(number: int, topic: str = "t", broker: int = 0) -> Owned:
    """A partition of the cluster's broker."""
    return Owned(topic, BrokerPartition(broker, number))
