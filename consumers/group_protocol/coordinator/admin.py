"""DescribeGroups, ListGroups, DeleteGroups, ConsumerGroupDescribe, and groups that end.

See docs/group-protocol.md (Dead), §11 (tombstones).
"""

from __future__ import annotations

from functools import partial

from consumers.group_protocol.coordinator.events import GroupRemoved
from consumers.group_protocol.coordinator.group import ClassicGroup, State
from consumers.group_protocol.coordinator.groups import Group, Groups
from consumers.group_protocol.coordinator.records import group_key, offset_record
from consumers.group_protocol.coordinator.replies import Replies, nothing
from consumers.group_protocol.coordinator.requests import (
    ConsumerGroupDescribe,
    DeleteGroups,
    DescribeGroups,
    ListGroups,
    Token,
)
from consumers.group_protocol.coordinator.results import (
    ConsumerGroupDescribeResult,
    DeletedGroup,
    DeleteGroupsResult,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsResult,
    ListedGroup,
    ListGroupsResult,
)
from consumers.group_protocol.coordinator.settings import Record
from consumers.group_protocol.kip848.group import ConsumerGroup
from consumers.group_protocol.kip848.records import group_tombstones
from consumers.group_protocol.subscription import PROTOCOL_TYPE, Subscription, encode_assignment
from since2011.wire.error_codes import ErrorCode


class Admin:
    """Thread: one."""

    def __init__(self, replies: Replies, groups: Groups) -> None:
        self._replies, self._groups = replies, groups

    def describe(self, token: Token, request: DescribeGroups) -> None:
        self._replies.answer(token, DescribeGroupsResult(tuple(self._describe_one(name) for name in request.groups)))

    def _describe_one(self, name: str) -> DescribedGroup:
        if not name:
            return DescribedGroup(ErrorCode.INVALID_GROUP_ID, name)
        group = self._groups.get(name)
        if group is None:
            return DescribedGroup(ErrorCode.NONE, name)
        if isinstance(group, ConsumerGroup):
            return _in_classic_words(group)
        is_stable = group.state is State.STABLE
        members = tuple(
            DescribedMember(
                each.id,
                each.instance,
                each.client_id,
                each.client_host,
                each.metadata(group.protocol) if is_stable else b"",
                each.assignment if is_stable else b"",
            )
            for each in group.members.values()
        )
        protocol = (group.protocol or "") if is_stable else ""
        return DescribedGroup(ErrorCode.NONE, name, group.state.value, group.protocol_type, protocol, members)

    def describe_consumers(self, token: Token, request: ConsumerGroupDescribe) -> None:
        described = tuple(_describe_consumer_group(name, self._groups.consumer(name)) for name in request.groups)
        self._replies.answer(token, ConsumerGroupDescribeResult(described))

    def list(self, token: Token, request: ListGroups) -> None:
        listed = [
            ListedGroup(group.name, protocol_type(group), state_name(group), group.kind) for group in self._groups
        ]
        wanted = tuple(
            each
            for each in listed
            if (not request.states or each.state in request.states)
            and (not request.types or each.group_type in request.types)
        )
        self._replies.answer(token, ListGroupsResult(ErrorCode.NONE, wanted))

    def delete(self, token: Token, request: DeleteGroups) -> None:
        """Answer when every deletion is durable."""
        results = {name: self._delete_refusal(name) for name in request.groups}
        doomed = [group for name, error in results.items() if not error and (group := self._groups.get(name))]
        waiting = len(doomed)

        def settled(name: str, error: ErrorCode, _now: float) -> None:
            nonlocal waiting
            waiting -= 1
            results[name] = error
            if not waiting:
                answer()

        def answer() -> None:
            deleted = tuple(DeletedGroup(name, results[name]) for name in request.groups)
            self._replies.answer(token, DeleteGroupsResult(deleted))

        for group in doomed:
            self._groups.discard(group)
            self._replies.tell(GroupRemoved(group=group.name, reason="deleted"))
            self._replies.append(
                group.name,
                tombstones(group),
                partial(settled, group.name, ErrorCode.NONE),
                partial(settled, group.name, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            )
        if not doomed:
            answer()

    def _delete_refusal(self, name: str) -> ErrorCode:
        if not name:
            return ErrorCode.INVALID_GROUP_ID
        group = self._groups.get(name)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NON_EMPTY_GROUP if group.members or _has_pending(group) else ErrorCode.NONE

    def maybe_forget(self, group: Group) -> None:
        """A group with no members and no offsets has nothing left to remember."""
        if not (group.members or group.book.appended or group.book.pending or _has_pending(group)):
            self._groups.discard(group)
            self._replies.append(group.name, tombstones(group), nothing, nothing)
            self._replies.tell(GroupRemoved(group=group.name, reason="no members and no offsets left"))


def _has_pending(group: Group) -> bool:
    return isinstance(group, ClassicGroup) and bool(group.pending)


def tombstones(group: Group) -> list[Record]:
    """What erases a group and its offsets from the log."""
    offsets = [offset_record(group.name, partition, None) for partition in group.book.appended]
    if isinstance(group, ConsumerGroup):
        return [*offsets, *group_tombstones(group.name)]
    return [*offsets, Record(group_key(group.name), None)]


def state_name(group: Group) -> str:
    return group.state_name if isinstance(group, ConsumerGroup) else group.state.value


def protocol_type(group: Group) -> str:
    return PROTOCOL_TYPE if isinstance(group, ConsumerGroup) else group.protocol_type


def _in_classic_words(group: ConsumerGroup) -> DescribedGroup:
    """A KIP-848 group for tools that only know DescribeGroups."""
    members = tuple(
        DescribedMember(
            each.id,
            each.instance,
            each.client_id,
            each.client_host,
            Subscription(each.topics, b"").encode(0),
            encode_assignment(each.assigned),
        )
        for each in group.members.values()
    )
    return DescribedGroup(
        ErrorCode.NONE, group.name, group.state_name, PROTOCOL_TYPE, group.assignor if members else "", members
    )


def _describe_consumer_group(name: str, group: ConsumerGroup | None) -> DescribedConsumerGroup:
    if group is None:
        return DescribedConsumerGroup(ErrorCode.GROUP_ID_NOT_FOUND if name else ErrorCode.INVALID_GROUP_ID, name)
    members = tuple(
        DescribedConsumer(
            each.id,
            each.instance,
            each.epoch,
            each.client_id,
            each.client_host,
            each.topics,
            tuple(sorted(each.assigned)),
            tuple(sorted(group.target.get(each.id, ()))),
        )
        for each in group.members.values()
    )
    return DescribedConsumerGroup(
        ErrorCode.NONE, name, group.state_name, group.epoch, group.target_epoch, group.assignor, members
    )
