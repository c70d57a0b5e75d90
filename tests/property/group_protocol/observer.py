"""An observer of a simulated group: it keeps its own books and objects to what must never happen.

It knows nothing of the coordinator's inside except, for KIP-848, what each member is said to hold; everything else it
concludes from requests, answers and time.
"""

from __future__ import annotations

from collections.abc import Callable

from consumers.group_protocol.coordinator.requests import (
    ConsumerGroupHeartbeat,
    JoinGroup,
    OffsetCommit,
    Request,
    SyncGroup,
    Token,
)
from consumers.group_protocol.coordinator.results import (
    ConsumerGroupHeartbeatResult,
    JoinGroupResult,
    OffsetCommitResult,
    Reply,
    SyncGroupResult,
)
from consumers.group_protocol.kip848.group import ConsumerGroup
from consumers.group_protocol.subscription import decode_assignment
from consumers.sim.compare.figures import ownership
from consumers.sim.compare.side_by_side import MODERN
from consumers.sim.compare.world import GROUP, GroupWorld
from consumers.sim.scenario import SESSION_S, Scenario
from kafka2011.types import TopicPartition
from since2011.wire.error_codes import ErrorCode

_HEARD = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
"""Answers to a member that counts as alive: "join again" is said only to one whose heartbeat was heard."""


class Objection(AssertionError):
    """A promise was broken."""


def object_if(broken: object, promise: str) -> None:
    if broken:
        raise Objection(promise)


class Observer:
    """Sits between the world and the coordinator."""

    def __init__(self, world: GroupWorld) -> None:
        self.world = world
        self.generation = 0
        self.epochs: dict[str, int] = {}
        self.heard: dict[str, float] = {}
        self.parked: set[str] = set()
        self.owners: dict[tuple[int, TopicPartition], str] = {}
        self.committed: dict[tuple[str, int], int] = {}
        self._requests: dict[Token, Request] = {}
        self._handle = world.coordinator.handle
        self._tick = world.coordinator.tick
        world.coordinator.handle = self.handle  # type: ignore[method-assign]
        world.coordinator.tick = self.tick  # type: ignore[method-assign]

    def handle(self, token: Token, request: Request, now: float) -> list[Reply]:
        self._requests[token] = request
        if isinstance(request, (JoinGroup, SyncGroup)) and request.member:
            self.parked.add(request.member)
        return self._watch(self._handle(token, request, now))

    def tick(self, now: float) -> list[Reply]:
        return self._watch(self._tick(now))

    def _watch(self, replies: list[Reply]) -> list[Reply]:
        for reply in replies:
            request = self._requests.pop(reply.token)
            match request, reply.response:
                case JoinGroup(), JoinGroupResult(error=0) as joined:
                    object_if(joined.generation < self.generation, "a generation went back")
                    self.generation = joined.generation
                    self._alive(joined.member)
                case SyncGroup() as sync, SyncGroupResult(error=0) as synced:
                    self._alive(sync.member)
                    self._assigned(sync, synced)
                case ConsumerGroupHeartbeat() as beat, ConsumerGroupHeartbeatResult(error=0) as answer:
                    self.epochs[beat.member] = answer.epoch
                    self._alive(beat.member)
                case OffsetCommit() as commit, OffsetCommitResult() as answer if not answer.partitions[0].error:
                    self._accepted(commit)
                case _, response if getattr(response, "error", 0) in _HEARD and hasattr(request, "member"):
                    self._alive(str(request.member))
        self._no_two_holders()
        return replies

    def _alive(self, member: str) -> None:
        self.heard[member] = self.world.now
        self.parked.discard(member)

    def _assigned(self, request: SyncGroup, result: SyncGroupResult) -> None:
        object_if(request.generation != self.generation, "an assignment of an old generation was handed out")
        for partition in decode_assignment(result.assignment):
            owner = self.owners.setdefault((request.generation, partition), request.member)
            object_if(owner != request.member, f"two owners of {partition} in generation {request.generation}")

    def _accepted(self, commit: OffsetCommit) -> None:
        known = self.epochs.get(commit.member, self.generation)
        object_if(commit.generation != known, "a commit of an old generation or epoch was accepted")
        silent_s = self.world.now - self.heard.get(commit.member, 0.0)
        object_if(silent_s > SESSION_S + 0.01 and commit.member not in self.parked, "a dead member committed")
        self._alive(commit.member)
        for each in commit.offsets:
            key = (each.topic, each.partition)
            object_if(each.offset < self.committed.get(key, 0), "a committed offset went back")
            self.committed[key] = each.offset

    def _no_two_holders(self) -> None:
        group = self.world.coordinator.groups().get(GROUP)
        if isinstance(group, ConsumerGroup):
            held = [partition for member in group.members.values() for partition in member.held]
            object_if(len(held) != len(set(held)), "two members hold one partition")

    def at_rest(self, *, clean: bool) -> None:
        """After a quiet time."""
        world = self.world
        living = [member for member in world.members if member.alive]
        readers = [partition for member in living for partition in member.reading]
        if living:
            object_if(len(set(readers)) < world.n_partitions, "partitions without a reader")
            object_if(len(readers) > world.n_partitions, "partitions with two readers")
            sizes = [len(member.reading) for member in living]
            object_if(max(sizes) - min(sizes) > 1, "shares are not even")
            object_if(world.lost, "messages never delivered")
        if clean:
            object_if(world.duplicates, "duplicates although everyone came and went in peace")
            owned = ownership(world.lanes, 0.0, 0.0, world.scenario.duration_s)
            object_if(owned.overlap_s > 0, "two readers at a time")
            object_if(owned.longest_s > 5.0, "a rebalance did not end by itself")


def watch(
    scenario: Scenario, protocol: str, *, clean: bool, prepare: Callable[[GroupWorld], None] | None = None
) -> None:
    """Run a scenario under observation; raises Objection."""
    world = GroupWorld(scenario, MODERN[protocol])
    if prepare is not None:
        prepare(world)
    observer = Observer(world)
    world.run()
    observer.at_rest(clean=clean)
