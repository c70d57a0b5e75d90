"""SyncGroup, Heartbeat and LeaveGroup.

See docs/group-protocol.md.
"""

from __future__ import annotations

from consumers.group_protocol.coordinator.group import ClassicGroup, State
from consumers.group_protocol.coordinator.groups import Groups
from consumers.group_protocol.coordinator.rebalance import Rebalance
from consumers.group_protocol.coordinator.records import group_record
from consumers.group_protocol.coordinator.replies import Replies
from consumers.group_protocol.coordinator.requests import Heartbeat, LeaveGroup, LeavingMember, SyncGroup, Token
from consumers.group_protocol.coordinator.results import (
    HeartbeatResult,
    LeaveGroupResult,
    LeftMember,
    SyncGroupResult,
)
from consumers.group_protocol.coordinator.timers import Timer
from since2011.wire.error_codes import ErrorCode


class Membership:
    """Thread: one."""

    def __init__(self, replies: Replies, groups: Groups, rebalance: Rebalance) -> None:
        self._replies, self._groups, self._rebalance = replies, groups, rebalance

    def _find(
        self, group_id: str, member: str, instance: str | None, generation: int
    ) -> tuple[ClassicGroup | None, ErrorCode]:
        """The checks SyncGroup and Heartbeat share: group, member, generation."""
        if not group_id:
            return None, ErrorCode.INVALID_GROUP_ID
        group = self._groups.classic(group_id)
        if group is None:
            return None, ErrorCode.UNKNOWN_MEMBER_ID
        if group.state is State.DEAD:
            return None, ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = group.validate(member, instance)
        if error:
            return None, error
        return (group, ErrorCode.NONE) if generation == group.generation else (None, ErrorCode.ILLEGAL_GENERATION)

    # SyncGroup

    def sync(self, token: Token, request: SyncGroup) -> None:
        """Answer now, or park until the leader's assignment is durable."""
        group, error = self._find(request.group, request.member, request.instance, request.generation)
        if group is not None:
            if not _same(request.protocol_type, group.protocol_type) or not _same(request.protocol, group.protocol):
                error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            elif group.state is State.PREPARING:
                error = ErrorCode.REBALANCE_IN_PROGRESS
            elif _size(request) > self._replies.settings.max_group_bytes // 2:
                error = ErrorCode.INVALID_REQUEST
        if group is None or error:
            self._replies.answer(token, SyncGroupResult(error))
            return
        member = group.members[request.member]
        self._seen_sync(group, request.member)
        if group.state is State.STABLE:
            self._rebalance.restart_session(group, member)
            self._replies.answer(token, SyncGroupResult(ErrorCode.NONE, member.assignment))
            return
        self._replies.forget(member.sync_token)
        member.syncing, member.sync_token = True, token
        if request.member == group.leader and group.logging != group.generation:
            self._log_assignment(group, {each.member: each.assignment for each in request.assignments})

    def _seen_sync(self, group: ClassicGroup, member_id: str) -> None:
        group.unsynced.discard(member_id)
        if not group.unsynced:
            self._replies.timers.cancel(Timer("sync", group.name))

    def _log_assignment(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        generation = group.logging = group.generation

        def still_completing() -> bool:
            return group.state is State.COMPLETING and group.generation == generation

        def durable(_now: float) -> None:
            if still_completing():
                self._rebalance.complete_sync(group, assignments)

        def failed(_now: float) -> None:
            if still_completing():
                group.logging = None
                self._rebalance.prepare(group, "the assignment could not be logged")

        self._replies.append(group.name, [group_record(group, assignments)], durable, failed)

    # Heartbeat

    def heartbeat(self, token: Token, request: Heartbeat) -> None:
        """27 during the join phase is the only way a member learns of a rebalance."""
        group, error = self._find(request.group, request.member, request.instance, request.generation)
        if group is not None:
            self._rebalance.restart_session(group, group.members[request.member])
            if group.state is State.PREPARING:
                error = ErrorCode.REBALANCE_IN_PROGRESS
        self._replies.answer(token, HeartbeatResult(error))

    # LeaveGroup

    def leave(self, token: Token, request: LeaveGroup) -> None:
        """Remove each member named; the group rebalances once for all of them."""
        group = self._groups.classic(request.group)
        if not request.group:
            error = ErrorCode.INVALID_GROUP_ID
        elif group is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        elif group.state is State.DEAD:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        else:
            self._replies.answer(token, LeaveGroupResult(ErrorCode.NONE, self._leave_all(group, request.members)))
            return
        self._replies.answer(token, LeaveGroupResult(error))

    def _leave_all(self, group: ClassicGroup, leaving: tuple[LeavingMember, ...]) -> tuple[LeftMember, ...]:
        n_before = len(group.members)
        left = tuple(LeftMember(each.member, each.instance, self._leave_one(group, each)) for each in leaving)
        if len(group.members) < n_before:
            self._rebalance.after_removal(group, "a member left")
        else:
            self._rebalance.maybe_complete_join(group)  # a pending id may have held it up
        return left

    def _leave_one(self, group: ClassicGroup, leaving: LeavingMember) -> ErrorCode:
        member_id = leaving.member
        if not member_id and leaving.instance is not None:  # the administrator's way: by instance id alone
            member_id = group.instances.get(leaving.instance, "")
        if member_id in group.pending:
            group.pending.discard(member_id)
            self._replies.holdings.drop(group.name, member_id)
            self._replies.timers.cancel(Timer("pending", group.name, member_id))
            return ErrorCode.NONE
        error = group.validate(member_id, leaving.instance)
        if not error:
            self._rebalance.forget(group, group.members[member_id], "left")
        return error


def _same(stated: str | None, actual: str | None) -> bool:
    return stated is None or stated == actual


def _size(request: SyncGroup) -> int:
    return sum(len(each.assignment) for each in request.assignments)
