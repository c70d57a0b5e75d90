"""JoinGroup: the rules, from top to bottom; the first that applies answers.

See docs/group-protocol.md (numbered rules), §6 (member ids), §7 (static members).
"""

from __future__ import annotations

from consumers.group_protocol.coordinator.events import MemberAdded, StaticMemberReplaced
from consumers.group_protocol.coordinator.group import ClassicGroup, State
from consumers.group_protocol.coordinator.groups import Groups
from consumers.group_protocol.coordinator.holdings import MAX_INSTANCE, MEMBER_OVERHEAD, is_name
from consumers.group_protocol.coordinator.member import Member
from consumers.group_protocol.coordinator.rebalance import Rebalance
from consumers.group_protocol.coordinator.records import group_record
from consumers.group_protocol.coordinator.replies import Replies
from consumers.group_protocol.coordinator.requests import JoinGroup, Token
from consumers.group_protocol.coordinator.results import JoinGroupResult
from consumers.group_protocol.coordinator.timers import Timer
from since2011.wire.error_codes import ErrorCode

HANDSHAKE_VERSION = 4
"""From here on a new dynamic member first gets an id and joins with it only in a second request (KIP-394)."""
SKIP_ASSIGNMENT_VERSION = 9


class Joining:
    """Thread: one."""

    def __init__(self, replies: Replies, groups: Groups, rebalance: Rebalance) -> None:
        self._replies, self._groups, self._rebalance = replies, groups, rebalance

    def join(self, token: Token, request: JoinGroup) -> None:
        """Answer now, or park until the join phase ends."""
        error = self._refusal(request)
        group = None if error else self._groups.classic_for_join(request.group, create=not request.member)
        if isinstance(group, ErrorCode):
            error, group = group, None
        if group is not None:
            error = self._group_refusal(group, request)
        if error or group is None:
            self._refuse(token, request, error)
            return
        self._groups.admit(group)
        if not request.member:
            self._join_without_id(token, group, request)
        else:
            self._join_with_id(token, group, request)

    def _refusal(self, request: JoinGroup) -> ErrorCode:
        settings = self._replies.settings
        if not is_name(request.group):
            return ErrorCode.INVALID_GROUP_ID
        if not settings.min_session_ms <= request.session_ms <= settings.max_session_ms:  # 1
            return ErrorCode.INVALID_SESSION_TIMEOUT
        is_named = is_name(request.protocol_type or "-") and is_name(request.instance or "-", MAX_INSTANCE)
        if not is_named or request.rebalance_ms < 0:
            return ErrorCode.INVALID_REQUEST
        return self._replies.holdings.refusal(request.group, request.member, Member.of(request.member, request).size)

    def _group_refusal(self, group: ClassicGroup, request: JoinGroup) -> ErrorCode:
        if not group.has_room_for(request.member, self._replies.settings.max_group_size):  # 3
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if group.state is State.DEAD:  # 4
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not group.is_compatible(request):  # 5
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if not request.member and len(group.members) + len(group.pending) >= self._replies.settings.max_group_size:
            known = group.instances.get(request.instance or "")
            return ErrorCode.NONE if known else ErrorCode.GROUP_MAX_SIZE_REACHED
        return ErrorCode.NONE

    def _refuse(self, token: Token, request: JoinGroup, error: ErrorCode) -> None:
        self._replies.answer(token, JoinGroupResult(error, member=request.member))

    # Without a member id

    def _join_without_id(self, token: Token, group: ClassicGroup, request: JoinGroup) -> None:
        if request.instance is not None:  # 8
            if request.instance in group.instances:
                self._replace_static(token, group, request)
            else:
                self._add(token, group, request, self._replies.new_member_id(request.instance))
            return
        member_id = self._replies.new_member_id(request.client_id)
        if request.version < HANDSHAKE_VERSION:  # 7
            self._add(token, group, request, member_id)
            return
        group.pending.add(member_id)  # 6
        self._replies.holdings.hold(group.name, member_id, MEMBER_OVERHEAD + len(member_id))
        self._replies.arm(Timer("pending", group.name, member_id), request.session_ms)
        self._replies.answer(token, JoinGroupResult(ErrorCode.MEMBER_ID_REQUIRED, member=member_id))

    def _add(self, token: Token, group: ClassicGroup, request: JoinGroup, member_id: str) -> None:
        member = Member.of(member_id, request)
        group.add(member, request.protocol_type)
        self._replies.holdings.hold(group.name, member_id, member.size)
        self._replies.arm(Timer("session", group.name, member_id), self._replies.settings.new_member_join_ms)
        self._replies.tell(MemberAdded(group=group.name, member=member_id, instance=request.instance))
        group.newcomer = True
        self._park(token, group, member, "a member joined")

    def _replace_static(self, token: Token, group: ClassicGroup, request: JoinGroup) -> None:
        """A restarted instance takes its own place; in Stable nobody else notices (§7)."""
        assert request.instance is not None
        member = group.members[group.instances[request.instance]]
        old_id, old_protocols, leader_before = member.id, member.protocols, group.leader
        new_id = self._replies.new_member_id(request.instance)
        self._rebalance.fence(member, ErrorCode.FENCED_INSTANCE_ID)
        self._rename(group, member, new_id)
        self._update(group, member, request)
        if group.state is not State.STABLE or group.vote() != group.protocol:
            self._park(token, group, member, "a static member was replaced")
            return
        # Below version 9 the old id is named as leader, so that a restarted leader does not assign anew.
        leader = leader_before if request.version < SKIP_ASSIGNMENT_VERSION else None

        def durable(_now: float) -> None:
            self._replies.answer(token, self._rebalance.joined(group, new_id, leader))

        def undo(_now: float) -> None:
            if group.members.get(new_id) is member:
                member.protocols = old_protocols
                self._rename(group, member, old_id)
            self._refuse(token, request, ErrorCode.COORDINATOR_NOT_AVAILABLE)

        self._replies.append(group.name, [group_record(group)], durable, undo)

    def _rename(self, group: ClassicGroup, member: Member, new_id: str) -> None:
        assert member.instance is not None
        before = member.id
        self._replies.timers.cancel(Timer("session", group.name, before))
        self._replies.holdings.drop(group.name, before)
        group.rename(member, new_id)
        self._replies.holdings.hold(group.name, new_id, member.size)
        self._rebalance.restart_session(group, member)
        replaced = StaticMemberReplaced(group=group.name, instance=member.instance, before=before, after=new_id)
        self._replies.tell(replaced)

    # With a member id

    def _join_with_id(self, token: Token, group: ClassicGroup, request: JoinGroup) -> None:
        if request.member in group.pending:  # 9
            if request.instance is not None:
                self._refuse(token, request, ErrorCode.INVALID_REQUEST)
                return
            group.pending.discard(request.member)
            self._replies.timers.cancel(Timer("pending", group.name, request.member))
            self._add(token, group, request, request.member)
            return
        error = group.validate(request.member, request.instance)  # 10
        if error:
            self._refuse(token, request, error)
            return
        member = group.members[request.member]
        same = member.protocols == request.protocols
        answer_now = group.state is State.COMPLETING or (group.state is State.STABLE and member.id != group.leader)
        if same and answer_now:
            # The answer was lost on the way: repeat it instead of disturbing everyone.
            member.is_new = False
            self._rebalance.restart_session(group, member)
            self._replies.answer(token, self._rebalance.joined(group, member.id))
            return
        self._update(group, member, request)
        self._park(token, group, member, "the leader joined again" if same else "a member changed its subscription")

    def _update(self, group: ClassicGroup, member: Member, request: JoinGroup) -> None:
        member.update(request)
        self._replies.holdings.hold(group.name, member.id, member.size)

    def abandoned(self, token: Token) -> None:
        """The connection that waits for this answer is gone.

        A member stays until its timers remove it (§23). One that was never answered is not a member to anybody yet, it
        least of all: what it brought is released at once. If it comes back under the id it was given it is told 25, and
        joins anew.
        """
        group_name, member_id = self._replies.forget(token) or ("", "")
        group = self._groups.classic(group_name)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or not member.is_new or not member.joining:
            return
        reason = "its connection ended before it was answered"
        self._rebalance.forget(group, member, reason)
        if not self._groups.discard_unborn(group) and not group.is_initial:
            self._rebalance.after_removal(group, reason)

    def _park(self, token: Token, group: ClassicGroup, member: Member, reason: str) -> None:
        self._replies.forget(member.join_token)
        if group.state is not State.PREPARING:
            self._rebalance.prepare(group, reason)
        member.joining, member.join_token = True, token
        self._replies.park(token, group.name, member.id)
        if not group.is_initial:
            self._rebalance.maybe_complete_join(group)
