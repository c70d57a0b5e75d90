"""A KIP-848 group: epochs, a target assignment, and who holds what.

See docs/group-protocol.md. Two members never hold one partition: ``holders`` has room for one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum

from consumers.group_protocol.coordinator.holdings import member_size
from consumers.group_protocol.coordinator.offset_book import OffsetBook
from kafka2011.types import TopicPartition

Partitions = frozenset[TopicPartition]
NOTHING: Partitions = frozenset()


class MemberState(IntEnum):
    """How far a member has come towards its target."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@dataclass(slots=True)
class ConsumerMember:
    """A member with what it was told to own (``assigned``) and what it has not yet given up (``revoking``)."""

    id: str
    instance: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    assignor: str | None = None
    rebalance_ms: int = 300_000
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NOTHING
    revoking: Partitions = NOTHING

    @property
    def size(self) -> int:
        """Bytes kept of it."""
        return member_size([self.id, self.instance, self.rack, *self.topics], ())

    @property
    def held(self) -> Partitions:
        return self.assigned | self.revoking

    @property
    def is_away(self) -> bool:
        """A static member that said it will be back (epoch -2)."""
        return self.epoch < 0


@dataclass(slots=True)
class Standing:
    """What reconciliation decided for a member."""

    state: MemberState
    epoch: int
    assigned: Partitions
    revoking: Partitions = NOTHING


@dataclass(slots=True)
class ConsumerGroup:
    """Thread: one."""

    name: str
    book: OffsetBook
    state_ms: int
    """Wall time of the last coming or going: an empty group's offsets age from here."""
    epoch: int = 0
    target_epoch: int = 0
    assignor: str = ""
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    target: dict[str, Partitions] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    holders: dict[TopicPartition, str] = field(default_factory=dict)
    partition_counts: dict[str, int] = field(default_factory=dict)
    """The topics the target was computed from; a difference means a new epoch."""
    wishes: dict[str, tuple[tuple[str, ...], str | None]] = field(default_factory=dict)
    """What each member wanted when the target was computed."""

    kind = "consumer"

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        settled = all(
            member.state is MemberState.STABLE and member.epoch == self.target_epoch for member in self.members.values()
        )
        return "Stable" if settled else "Reconciling"

    @property
    def subscribed(self) -> set[str]:
        return {topic for member in self.members.values() for topic in member.topics}

    def add(self, member: ConsumerMember) -> None:
        self.members[member.id] = member
        if member.instance is not None:
            self.instances[member.instance] = member.id

    def remove(self, member: ConsumerMember) -> None:
        """Free everything the member held; a new epoch follows."""
        del self.members[member.id]
        self.target.pop(member.id, None)
        if member.instance is not None and self.instances.get(member.instance) == member.id:
            del self.instances[member.instance]
        for partition in member.held:
            del self.holders[partition]

    def replace(self, old: ConsumerMember, new_id: str) -> ConsumerMember:
        """A returning static member takes over target and holdings of its former self."""
        old_id = old.id
        target = self.target.pop(old_id, NOTHING)
        del self.members[old_id]
        for partition in old.held:
            self.holders[partition] = new_id
        old.id, old.epoch, old.previous_epoch = new_id, 0, 0
        self.target[new_id] = target
        if old_id in self.wishes:
            self.wishes[new_id] = self.wishes.pop(old_id)
        self.add(old)
        return old

    def apply(self, member: ConsumerMember, standing: Standing) -> bool:
        """Take over what was decided; tell whether anything changed."""
        before = (member.state, member.epoch, member.assigned, member.revoking)
        for partition in member.held - standing.assigned - standing.revoking:
            del self.holders[partition]
        for partition in standing.assigned | standing.revoking:
            self.holders[partition] = member.id
        if member.epoch != standing.epoch:
            member.previous_epoch = member.epoch
        member.state, member.epoch = standing.state, standing.epoch
        member.assigned, member.revoking = standing.assigned, standing.revoking
        return before != (member.state, member.epoch, member.assigned, member.revoking)

    def held_by_others(self, member: ConsumerMember, partitions: Partitions) -> Partitions:
        return frozenset(p for p in partitions if self.holders.get(p, member.id) != member.id)

    def preferred_assignor(self, default: str) -> str:
        """The one most members ask for, if any does."""
        wishes = Counter(member.assignor for member in self.members.values() if member.assignor)
        return wishes.most_common(1)[0][0] if wishes else default
