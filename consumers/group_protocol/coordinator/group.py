"""A classic group: its state, its members, and the questions the rules ask of it.

See docs/group-protocol.md.

    Empty               -> PreparingRebalance:   a member is added; its join is parked
    PreparingRebalance  -> CompletingRebalance:  all have joined, or the deadline passed; joins are answered
    CompletingRebalance -> Stable:               the leader's assignment is durable; syncs are answered
    Stable, Completing  -> PreparingRebalance:   someone came, went, or changed what it wants
    PreparingRebalance  -> Empty:                nobody is left
    Empty               -> Dead:                 deleted, or nothing left to remember
"""

from __future__ import annotations

from collections import Counter
from enum import Enum

from consumers.group_protocol.coordinator.member import Member
from consumers.group_protocol.coordinator.offset_book import OffsetBook
from consumers.group_protocol.coordinator.requests import JoinGroup, Protocol
from since2011.wire.error_codes import ErrorCode


class State(Enum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicGroup:
    """Thread: one. Only ``rebalance`` changes ``state`` and ``generation``."""

    kind = "classic"

    def __init__(self, name: str, book: OffsetBook, *, state_ms: int) -> None:
        self.name = name
        self.book = book
        self.state = State.EMPTY
        self.state_ms = state_ms
        """Wall time of the last change of state: an empty group's offsets age from here."""
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.pending: set[str] = set()
        """Ids handed out but not yet joined with (KIP-394)."""
        self.unsynced: set[str] = set()
        """Members of this generation that have not sent SyncGroup."""
        self.logging: int | None = None
        """The generation whose assignment is on its way to disk; a leader repeating itself changes nothing."""
        self.instances: dict[str, str] = {}
        self.is_initial = False
        """The join phase began from Empty: only the initial delay ends it, not the arrival of members."""
        self.newcomer = False
        self.initial_remaining_ms = 0

    # Members

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.id] = member
        if self.leader is None:
            self.leader = member.id
        if member.instance is not None:
            self.instances[member.instance] = member.id

    def remove(self, member: Member) -> None:
        del self.members[member.id]
        self.unsynced.discard(member.id)
        if member.instance is not None and self.instances.get(member.instance) == member.id:
            del self.instances[member.instance]
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: Member, new_id: str) -> None:
        """Let a static member go on under a new id; assignment and leadership stay with it (§7)."""
        old_id = member.id
        member.id = new_id
        # Keep the order of members: the eldest is the next leader.
        self.members = {m.id: m for m in self.members.values()}
        assert member.instance is not None
        self.instances[member.instance] = new_id
        if self.leader == old_id:
            self.leader = new_id
        if old_id in self.unsynced:
            self.unsynced.remove(old_id)
            self.unsynced.add(new_id)

    def validate(self, member_id: str, instance: str | None) -> ErrorCode:
        """Who is speaking? The instance id is checked first, so that of two with one instance id the older is
        fenced for good instead of both evicting each other for ever (§4)."""
        if instance is not None:
            mapped = self.instances.get(instance)
            if mapped is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if mapped != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def has_room_for(self, member_id: str, limit: int) -> bool:
        if self.state in (State.EMPTY, State.DEAD):
            return True
        known = self.members.get(member_id)
        if self.state is State.PREPARING:
            return (known is not None and known.joining) or self.n_joining < limit
        return known is not None or len(self.members) < limit

    # Join phase

    @property
    def n_joining(self) -> int:
        return sum(member.joining for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        return not self.pending and all(member.joining for member in self.members.values())

    @property
    def rebalance_ms(self) -> int:
        """The slowest member decides how long a join phase may take."""
        return max((member.rebalance_ms for member in self.members.values()), default=0)

    # Protocols

    def is_compatible(self, request: JoinGroup) -> bool:
        """Could this joiner live with those present?"""
        if not request.protocol_type or not request.protocols:
            return False
        if not self.members:
            return True
        return request.protocol_type == self.protocol_type and any(
            all(member.supports(protocol.name) for member in self.members.values()) for protocol in request.protocols
        )

    def vote(self) -> str | None:
        """The protocol most members prefer among those all support; the leader's order settles a tie."""
        members = list(self.members.values())
        names = [{protocol.name for protocol in member.protocols} for member in members]
        candidates = set.intersection(*names) if names else set()
        if not candidates:
            return None
        votes = Counter(vote for member in members if (vote := member.vote(candidates)) is not None)
        order = [protocol.name for protocol in self._leader_protocols()]
        return max(votes, key=lambda name: (votes[name], -order.index(name)))

    def _leader_protocols(self) -> tuple[Protocol, ...]:
        leader = self.members.get(self.leader or "") or next(iter(self.members.values()))
        return leader.protocols
