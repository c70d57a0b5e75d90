"""Lab 6, a model solution: a consumer of a group, from joining to leaving."""

from __future__ import annotations

from collections.abc import Generator
from random import Random
from typing import Any

from steps import (
    Children,
    ConnectionLoss,
    Create,
    DeleteIfMine,
    Exists,
    Get,
    Multi,
    NewSession,
    NodeExists,
    NoNode,
    Progress,
    Session,
    SessionExpired,
    Set,
    Start,
    Stop,
    Wait,
)

Steps = Generator[object, Any, Any]
COMMIT_S = 1.0


class Left(Exception):
    """The consumer was asked to leave, and has."""


class Consumer:
    """One consumer."""

    def __init__(self, group: str, consumer_id: str, topic: str, seed: int) -> None:
        self.consumer_id, self.topic = consumer_id, topic
        self.random = Random(seed)
        self.ids = f"/consumers/{group}/ids"
        self.owners = f"/consumers/{group}/owners/{topic}"
        self.offsets = f"/consumers/{group}/offsets/{topic}"
        self.topics = f"/brokers/topics/{topic}"
        self.reading: set[str] = set()
        self.intended: set[str] = set()
        """Partitions whose owner node may be ours: noted before the claim, for its answer may get lost."""
        self.missed = False
        """A change was told while we waited for something else."""
        self.stored: dict[str, int] = {}
        """What the offset registry holds, as far as we wrote it."""

    def life(self) -> Steps:
        """Join, serve, and begin again if the session ends."""
        while True:
            try:
                yield from self.register()
                yield from self.serve()
            except Left:
                return
            except SessionExpired:
                yield Stop()
                self.reading.clear()
                self.stored.clear()
                yield NewSession()

    def serve(self) -> Steps:
        """Rebalance when something changed, store offsets once a second."""
        yield from self.rebalance()
        while True:
            why = "changed" if self.missed else (yield Wait(COMMIT_S))
            self.missed = False
            if why == "leave":
                yield from self.leave()
            elif why == "time":
                yield from self.commit((yield Progress()))
            elif not (yield from self.still_right()):
                yield from self.rebalance()

    def rebalance(self) -> Steps:
        """Stop, store, release; then read, share and claim, until it works."""
        attempt = 0
        while True:
            stopped = yield Stop()
            self.reading.clear()
            yield from self.commit(stopped)
            yield from self.release()
            mine = yield from self.share()
            if (yield from self.claim(mine)):
                start = {}
                for partition in mine:
                    start[partition] = yield from self.offset(partition)
                yield Start(start)
                self.reading = set(mine)
                return
            yield from self.release()
            attempt += 1
            wait = min(2.0, 0.05 * 2 ** min(attempt, 6)) * self.random.uniform(0.5, 1.5)
            if (yield Wait(wait)) == "leave":
                yield from self.leave()

    def still_right(self) -> Steps:
        """Whether the registries still give us exactly what we read: then nobody has to stop."""
        mine = yield from self.share()
        if set(mine) != self.reading:
            return False
        session = yield Session()
        for partition in mine:
            if (yield from self.ask(Exists(f"{self.owners}/{partition}"))) != session:
                return False
        return True

    def register(self) -> Steps:
        """Make the id node; one of an earlier session goes by itself."""
        path = f"{self.ids}/{self.consumer_id}"
        while not (yield from self.make(path, self.topic)):
            if (yield Wait(0.3)) == "leave":
                raise Left

    def leave(self) -> Steps:
        """Stop, store, release, and delete the id node."""
        yield from self.commit((yield Stop()))
        yield from self.release()
        yield from self.ask(DeleteIfMine(f"{self.ids}/{self.consumer_id}"))
        raise Left

    def share(self) -> Steps:
        """Which partitions are ours by what the registries say now; all of it is watched."""
        partitions = []
        for broker in (yield from self.names(self.topics)):
            count = yield from self.value(f"{self.topics}/{broker}", True)
            partitions += [(int(broker), number) for number in range(int(count or 0))]
        members = []
        for member in (yield from self.names(self.ids)):
            if (yield from self.value(f"{self.ids}/{member}", False)) == self.topic.encode():
                members.append(member)
        if self.consumer_id not in members:
            return []
        ordered = [f"{broker}-{number}" for broker, number in sorted(partitions)]
        j, p, c = sorted(members).index(self.consumer_id), len(ordered), len(members)
        return ordered[j * p // c : (j + 1) * p // c]

    def claim(self, mine: list[str]) -> Steps:
        """Make the owner node of each; False if one is somebody else's."""
        for partition in mine:
            self.intended.add(partition)
            if not (yield from self.make(f"{self.owners}/{partition}", self.consumer_id)):
                return False
        return True

    def release(self) -> Steps:
        """Delete every owner node that is ours."""
        for partition in sorted(self.intended):
            yield from self.ask(DeleteIfMine(f"{self.owners}/{partition}"))
            self.intended.discard(partition)

    def offset(self, partition: str) -> Steps:
        """The stored offset, or 0."""
        value = yield from self.value(f"{self.offsets}/{partition}", False)
        if value is None:
            self.stored.pop(partition, None)
            return 0
        self.stored[partition] = int(value)
        return int(value)

    def commit(self, positions: dict[str, int]) -> Steps:
        """Store what has changed, all in one operation."""
        changed = {p: at for p, at in positions.items() if self.stored.get(p) != at}
        writes = [
            (Set if partition in self.stored else Create)(f"{self.offsets}/{partition}", str(at).encode())
            for partition, at in changed.items()
        ]
        if not writes:
            return
        try:
            yield Multi(writes)
        except (ConnectionLoss, NodeExists, NoNode):
            for partition, at in changed.items():
                yield from self.put(f"{self.offsets}/{partition}", str(at).encode())
        self.stored |= changed

    def put(self, path: str, value: bytes) -> Steps:
        """Write a node, whether it is there or not."""
        while True:
            try:
                yield from self.ask(Set(path, value))
                return
            except NoNode:
                pass
            try:
                yield from self.ask(Create(path, value))
                return
            except NodeExists:
                pass

    def make(self, path: str, value: str) -> Steps:
        """Make an ephemeral node; whether it is this session's afterwards."""
        while True:
            try:
                yield from self.ask(Create(path, value.encode(), True))
                return True
            except NodeExists:
                owner = yield from self.ask(Exists(path))
            if owner is not None:
                return owner == (yield Session())

    def names(self, path: str) -> Steps:
        """The names below a path, watched, also where the path is not there yet."""
        try:
            return (yield from self.ask(Children(path, True)))
        except NoNode:
            yield from self.ask(Exists(path, True))
            return []

    def value(self, path: str, watch: bool) -> Steps:
        """A node's value, or None."""
        try:
            return (yield from self.ask(Get(path, watch)))[0]
        except NoNode:
            return None

    def ask(self, operation: object) -> Steps:
        """Repeat an operation until it is answered."""
        while True:
            try:
                return (yield operation)
            except ConnectionLoss:
                if (yield Wait(self.random.uniform(0.02, 0.1))) == "changed":
                    self.missed = True
