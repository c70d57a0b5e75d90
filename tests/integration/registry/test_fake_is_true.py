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

    def answer(self, who: int, step: int, operation: Operation) -> object:
        """What an operation gives, with session ids replaced by who owns them."""
        try:
            result = self.sessions[who].perform(operation, lambda path: self.fired.update([step]))
        except RegistryError as error:
            return type(error).__name__, error.path
        if isinstance(result, Node):
            owners = {session.session_id: f"session {n}" for n, session in enumerate(self.sessions)}
            return result.value, result.version, owners.get(result.ephemeral_owner, result.ephemeral_owner)
        return result


def random_operation(random: Random) -> Operation:
    path, version = random.choice(PATHS), random.choice([-1, -1, -1, 0, 1])
    match random.randrange(12):
        case 0 | 1:
            return Children(path, watch=True)
        case 2:
            return Get(path, watch=True)
        case 3:
            return Exists(path, watch=True)
        case 4 | 5:
            return Create(path, b"%d" % random.randrange(9), random.random() < 0.4, random.random() < 0.4)
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
    create = Create(path, b"m", random.random() < 0.3)
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
