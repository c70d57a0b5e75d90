"""What a member may ask of its coordinator, as values.

See docs/modern-port.md (fields), §3 (rules), §12 (KIP-848). The codec turns bytes into these; the coordinator
sees nothing else. ``version`` is the version of the request on the wire and is carried only where a rule depends on
it. Topics are names everywhere: topic ids are the business of whoever owns the ids (the bridge). Several groups in
one request (OffsetFetch 8+) are several values here. The answers are in ``results``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from consumers.group_protocol.coordinator.settings import InTransaction
from kafka2011.types import TopicPartition

NO_GENERATION = -1
"""The generation of a committer that is in no group ("simple" consumer)."""

JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH = 0, -1, -2
"""Member epochs with a meaning of their own in ConsumerGroupHeartbeat."""

Token = Hashable
"""Names one request in flight; the caller's own object, unique among those not yet answered."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """One assignor a member offers, with its subscription bytes (§10), opaque here."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """Version 0 has no rebalance timeout: give the session timeout."""

    group: str
    session_ms: int
    rebalance_ms: int
    member: str
    protocol_type: str
    protocols: tuple[Protocol, ...]
    instance: str | None = None
    client_id: str = ""
    client_host: str = ""
    version: int = 5


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """What the leader gives one member: opaque bytes (§10)."""

    member: str
    assignment: bytes


@dataclass(frozen=True, slots=True)
class SyncGroup:
    """``protocol_type`` and ``protocol`` exist from version 5 on; None = not stated."""

    group: str
    generation: int
    member: str
    assignments: tuple[MemberAssignment, ...] = ()
    instance: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    group: str
    generation: int
    member: str
    instance: str | None = None


@dataclass(frozen=True, slots=True)
class LeavingMember:
    member: str
    instance: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """Versions 0-2 name exactly one member."""

    group: str
    members: tuple[LeavingMember, ...]


@dataclass(frozen=True, slots=True)
class OffsetToCommit:
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """``generation`` is the member epoch in KIP-848 groups; -1 with an empty member id is a simple consumer."""

    group: str
    generation: int
    member: str
    offsets: tuple[OffsetToCommit, ...]
    instance: str | None = None
    version: int = 9
    retention_ms: int = -1
    """How long to keep it, where the member says so (versions 2 to 4); -1: as long as the broker does."""
    transaction: InTransaction | None = None
    """TxnOffsetCommit: the offsets count once this transaction is committed."""


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """``partitions`` None = everything the group has. Member and epoch exist from version 9 on."""

    group: str
    partitions: tuple[TopicPartition, ...] | None = None
    member: str | None = None
    member_epoch: int = -1
    require_stable: bool = False


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    group: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class DescribeGroups:
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListGroups:
    """Empty filters let everything through."""

    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteGroups:
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeat:
    """KIP-848's one request. None and -1 mean "unchanged since my last heartbeat"."""

    group: str
    member: str
    epoch: int
    instance: str | None = None
    rack: str | None = None
    rebalance_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: tuple[TopicPartition, ...] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribe:
    groups: tuple[str, ...]


Request = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | OffsetCommit
    | OffsetFetch
    | OffsetDelete
    | DescribeGroups
    | ListGroups
    | DeleteGroups
    | ConsumerGroupHeartbeat
    | ConsumerGroupDescribe
)
