"""The fake ZooKeeper against a real one: the same random operations, the same answers, the same watches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from tests.waiting import until
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.operations import (
    Check,
    Children,
    Create,
    Delete,
    DeleteIfMine,
    Exists,
    Get,
    Multi,
    Node,
    Operation,
    Pipeline,
    RegistryError,
    Set,
    Sync,
)
from zk_registry.session import ZooKeeperSession
from zk_registry.testing import expire, fresh_chroot

N_SESSIONS = 3
N_STEPS = 120
PATHS = ["/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/z"]


@dataclass
class World:
    """Three sessions of one ZooKeeper, real or fake, and the watches that fired."""

    sessions: list[Any]
    fired: Counter[int] = field(default_factory=Counter)
    creations: dict[int, int] = field(default_factory=dict)
    """The numbers of creations, in the order in which they were seen."""

    def answer(self, who: int, step: int, operation: Operation) -> object:
        """What an operation gives, with session ids replaced by who owns them."""
        try:
            result = self.sessions[who].perform(operation, lambda path: self.fired.update([step]))
        except RegistryError as error:
            return self._told(error)
        return tuple(map(self._told, result)) if isinstance(operation, Pipeline) else self._told(result)

    def _told(self, result: object) -> object:
        if isinstance(result, RegistryError):
            return type(result).__name__, result.path
        if isinstance(result, Node):
            owners = {session.session_id: f"session {n}" for n, session in enumerate(self.sessions)}
            creation = self.creations.setdefault(result.czxid, len(self.creations))
            return result.value, result.version, owners.get(result.ephemeral_owner, result.ephemeral_owner), creation
        return result


def random_operation(random: Random) -> Operation:
    if random.random() < 0.1:
        single = (random_operation(random) for _ in range(random.randrange(1, 6)))
        kinds = (Children, Get, Exists, Set, Delete, Multi)
        return Pipeline(tuple(each for each in single if isinstance(each, kinds)))
    path, version = random.choice(PATHS), random.choice([-1, -1, -1, 0, 1])
    match random.randrange(12):
        case 0 | 1:
            return Children(path, watch=True)
        case 2:
            return Get(path, watch=True)
        case 3:
            return Exists(path, watch=True)
        case 4 | 5:
            value = random.choice([b"%d" % random.randrange(9), None])
            kinds = [random.random() < share for share in (0.4, 0.4, 0.2)]
            return Create(path, value, *kinds)
        case 6:
            return Set(path, b"%d" % random.randrange(9), version)
        case 7:
            return Delete(path, version)
        case 8:
            return DeleteIfMine(path)
        case 9:
            return Sync("/")
        case _:
            return Multi(tuple(random_write(random) for _ in range(random.randrange(1, 4))))


def random_write(random: Random) -> Create | Set | Delete | Check:
    path, version = random.choice(PATHS), random.choice([-1, -1, 0])
    create = Create(path, random.choice([b"m", None]), random.random() < 0.3, sequential=random.random() < 0.2)
    return random.choice([create, Set(path, b"n", version), Delete(path, version), Check(path, version)])


@pytest.mark.parametrize("seed", range(12))
def test_the_fake_answers_as_the_real_server(zookeeper: EmbeddedZooKeeper, seed: int) -> None:
    """Same operations, same answers, refusals and fired watches, through expiry of sessions (§3.2)."""
    connect = fresh_chroot(zookeeper.connect)
    random = Random(seed)
    world = FakeZooKeeper()
    fake = World([world.session() for _ in range(N_SESSIONS)])
    real = World([ZooKeeperSession(connect, timeout_s=30) for _ in range(N_SESSIONS)])
    try:
        for session in real.sessions:
            session.start()
        for step in range(N_STEPS):
            who = random.randrange(N_SESSIONS)
            if random.random() < 0.02:
                expire_both(connect, real.sessions[who], fake.sessions[who])
                continue
            operation = random_operation(random)
            assert real.answer(who, step, operation) == fake.answer(who, step, operation), (step, operation)
        barrier(real)
        world.deliver()
        assert real.fired == fake.fired
    finally:
        for session in real.sessions:
            session.close()


def expire_both(connect: str, real: ZooKeeperSession, fake: FakeSession) -> None:
    incarnation = real.incarnation
    expire(connect, real.session_id, real.password)
    until(lambda: real.incarnation > incarnation and real.wait_connected(1), "a new session has begun")
    fake.expire()
    fake.resume()


def barrier(world: World) -> None:
    """Return when each session has been told of everything that happened before."""
    told: list[str] = []
    for n, session in enumerate(world.sessions):
        session.perform(Sync("/"))
        session.perform(Exists(f"/barrier-{n}", watch=True), told.append)
    for n in range(len(world.sessions)):
        world.sessions[0].perform(Create(f"/barrier-{n}"))
    until(lambda: len(told) == len(world.sessions), "every session has passed the barrier")
