"""What a coordinator answers, as values: one result for each request.

See docs/modern-port.md (fields), §3 (rules), §12 (KIP-848).
"""

from __future__ import annotations

from dataclasses import dataclass

from consumers.group_protocol.coordinator.requests import (
    NO_GENERATION,
    ConsumerGroupDescribe,
    ConsumerGroupHeartbeat,
    DeleteGroups,
    DescribeGroups,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    Request,
    SyncGroup,
    Token,
)
from kafka2011.types import TopicPartition
from since2011.wire.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """What the leader is told of each member."""

    member: str
    instance: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupResult:
    """``members`` is filled for the leader only."""

    error: ErrorCode
    generation: int = NO_GENERATION
    protocol: str = ""
    leader: str = ""
    member: str = ""
    members: tuple[JoinedMember, ...] = ()
    protocol_type: str = ""


@dataclass(frozen=True, slots=True)
class SyncGroupResult:
    error: ErrorCode
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class LeftMember:
    member: str
    instance: str | None
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class LeaveGroupResult:
    """``error`` is about the request as a whole, ``members`` about each."""

    error: ErrorCode
    members: tuple[LeftMember, ...] = ()

    @property
    def single_error(self) -> ErrorCode:
        """The one code versions 0-2 have room for."""
        return self.error or (self.members[0].error if self.members else ErrorCode.NONE)


@dataclass(frozen=True, slots=True)
class PartitionResult:
    topic: str
    partition: int
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class OffsetCommitResult:
    """One entry per committed offset, in the order of the request."""

    partitions: tuple[PartitionResult, ...]


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """``offset`` -1 = never committed."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class OffsetFetchResult:
    error: ErrorCode
    offsets: tuple[FetchedOffset, ...] = ()


@dataclass(frozen=True, slots=True)
class OffsetDeleteResult:
    error: ErrorCode
    partitions: tuple[PartitionResult, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedMember:
    member: str
    instance: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """An unknown group is ``Dead`` without an error, as clients expect."""

    error: ErrorCode
    group: str
    state: str = "Dead"
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeGroupsResult:
    groups: tuple[DescribedGroup, ...]


@dataclass(frozen=True, slots=True)
class ListedGroup:
    group: str
    protocol_type: str
    state: str
    group_type: str
    """``classic`` or ``consumer``."""


@dataclass(frozen=True, slots=True)
class ListGroupsResult:
    error: ErrorCode
    groups: tuple[ListedGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class DeletedGroup:
    group: str
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class DeleteGroupsResult:
    groups: tuple[DeletedGroup, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatResult:
    """``assignment`` None = unchanged, () = own nothing."""

    error: ErrorCode
    message: str | None = None
    member: str | None = None
    epoch: int = 0
    heartbeat_ms: int = 0
    assignment: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class DescribedConsumer:
    member: str
    instance: str | None
    epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    error: ErrorCode
    group: str
    state: str = "Dead"
    epoch: int = 0
    target_epoch: int = 0
    assignor: str = ""
    members: tuple[DescribedConsumer, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeResult:
    groups: tuple[DescribedConsumerGroup, ...]


Response = (
    JoinGroupResult
    | SyncGroupResult
    | HeartbeatResult
    | LeaveGroupResult
    | OffsetCommitResult
    | OffsetFetchResult
    | OffsetDeleteResult
    | DescribeGroupsResult
    | ListGroupsResult
    | DeleteGroupsResult
    | ConsumerGroupHeartbeatResult
    | ConsumerGroupDescribeResult
)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer and the request it belongs to."""

    token: Token
    response: Response


def refusal(request: Request, error: ErrorCode) -> Response:
    """The answer that says only that it was refused, whatever was asked."""
    match request:
        case JoinGroup():
            return JoinGroupResult(error, member=request.member)
        case SyncGroup():
            return SyncGroupResult(error)
        case Heartbeat():
            return HeartbeatResult(error)
        case LeaveGroup():
            return LeaveGroupResult(error)
        case OffsetCommit():
            return OffsetCommitResult(
                tuple(PartitionResult(each.topic, each.partition, error) for each in request.offsets)
            )
        case OffsetFetch():
            return OffsetFetchResult(error)
        case OffsetDelete():
            return OffsetDeleteResult(error)
        case ConsumerGroupHeartbeat():
            return ConsumerGroupHeartbeatResult(error, None, request.member, request.epoch)
        case DescribeGroups():
            return DescribeGroupsResult(tuple(DescribedGroup(error, name) for name in request.groups))
        case ListGroups():
            return ListGroupsResult(error)
        case DeleteGroups():
            return DeleteGroupsResult(tuple(DeletedGroup(name, error) for name in request.groups))
        case ConsumerGroupDescribe():
            return ConsumerGroupDescribeResult(tuple(DescribedConsumerGroup(error, name) for name in request.groups))
