"""ConsumerGroupHeartbeat: one request joins, keeps alive, acknowledges and leaves.

See docs/group-protocol.md "Handling a heartbeat": the seven steps, in this order.
"""

from __future__ import annotations

from consumers.group_protocol.assignors.server import SERVER_ASSIGNORS, Wish
from consumers.group_protocol.coordinator.events import EpochBumped, MemberAdded, MemberRemoved, StaticMemberReplaced
from consumers.group_protocol.coordinator.groups import Groups
from consumers.group_protocol.coordinator.replies import Replies, nothing
from consumers.group_protocol.coordinator.requests import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroupHeartbeat,
    Token,
)
from consumers.group_protocol.coordinator.results import ConsumerGroupHeartbeatResult
from consumers.group_protocol.coordinator.settings import Record
from consumers.group_protocol.coordinator.timers import Timer
from consumers.group_protocol.kip848 import records
from consumers.group_protocol.kip848.group import ConsumerGroup, ConsumerMember, MemberState
from consumers.group_protocol.kip848.reconcile import reconcile
from consumers.group_protocol.kip848.validate import Refused, check_combination, check_epoch, check_instance
from since2011.wire.error_codes import ErrorCode


class Heartbeats:
    """Thread: one."""

    def __init__(self, replies: Replies, groups: Groups) -> None:
        self._replies, self._groups = replies, groups

    def heartbeat(self, token: Token, request: ConsumerGroupHeartbeat) -> None:
        """Answer once whatever changed is durable."""
        try:
            if request.epoch < JOIN_EPOCH:
                self._leave(token, request)
            else:
                self._join_or_stay(token, request)
        except Refused as refused:
            self._replies.answer(
                token, ConsumerGroupHeartbeatResult(refused.error, str(refused), request.member or None, request.epoch)
            )

    def _join_or_stay(self, token: Token, request: ConsumerGroupHeartbeat) -> None:
        check_combination(request, self._replies.settings.consumer_assignors)  # 1
        self._check_size(request)
        group, member, changes = self._find(request)  # 1, 2
        if self._update(member, request) or request.epoch == JOIN_EPOCH:  # 3
            self._replies.holdings.hold(group.name, member.id, member.size)
            changes.append(records.member_record(group, member))
        self._maybe_bump(group, changes, force=len(changes) > 0 and self._is_new_wish(group, member))
        if group.epoch > group.target_epoch:  # 4
            self._assign(group, changes)
        assigned_before = member.assigned
        owned = None if request.owned is None else frozenset(request.owned)
        if group.apply(member, reconcile(group, member, owned)):  # 5
            changes.append(records.current_record(group, member, self._replies.topics))
        self._arm(group, member)  # 6
        is_full = request.rebalance_ms >= 0 and request.topics is not None and request.owned is not None
        tell = is_full or request.epoch == JOIN_EPOCH or member.assigned != assigned_before  # 7
        self._answer_when_durable(
            token,
            group,
            changes,
            ConsumerGroupHeartbeatResult(
                ErrorCode.NONE,
                None,
                member.id,
                member.epoch,
                self._replies.settings.consumer_heartbeat_ms,
                tuple(sorted(member.assigned)) if tell else None,
            ),
        )

    def _find(self, request: ConsumerGroupHeartbeat) -> tuple[ConsumerGroup, ConsumerMember, list[Record]]:
        joining = request.epoch == JOIN_EPOCH
        group = self._groups.consumer_for_heartbeat(request.group, create=joining)
        if isinstance(group, ErrorCode):
            known = self._groups.get(request.group)
            if not joining and (known is None or not known.members):
                # 69 would end the client for good. A group whose coordinator died is here without its members.
                group = ErrorCode.UNKNOWN_MEMBER_ID
            raise Refused(group, f"no consumer group {request.group!r} here; join with epoch 0")
        member = group.members.get(request.member)
        check_instance(group, request)
        if member is not None:
            if not joining:
                check_epoch(member, request)
            return group, member, []
        if not joining:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"{request.member!r} is not in the group; join with epoch 0")
        if request.instance is not None and request.instance in group.instances:
            return group, *self._return_static(group, request)
        if len(group.members) >= self._replies.settings.max_group_size:
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group has {len(group.members)} members already")
        self._groups.admit(group)
        member = ConsumerMember(request.member, request.instance)
        group.add(member)
        group.state_ms = self._replies.wall_ms()
        self._replies.tell(MemberAdded(group=group.name, member=member.id, instance=member.instance))
        return group, member, []

    def _return_static(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeat
    ) -> tuple[ConsumerMember, list[Record]]:
        assert request.instance is not None
        old = group.members[group.instances[request.instance]]
        old_id = old.id
        self.cancel(group, old_id)
        self._replies.holdings.drop(group.name, old_id)
        member = group.replace(old, request.member)
        self._replies.tell(
            StaticMemberReplaced(group=group.name, instance=request.instance, before=old_id, after=member.id)
        )
        target = records.target_record(group, member.id, self._replies.topics)
        return member, [*records.member_tombstones(group.name, old_id), target]

    def _update(self, member: ConsumerMember, request: ConsumerGroupHeartbeat) -> bool:
        """Take over what the request states; tell whether anything is different."""
        before = (member.topics, member.assignor, member.rebalance_ms, member.rack)
        if request.topics is not None:
            member.topics = tuple(sorted(set(request.topics)))
        if request.rebalance_ms >= 0:
            member.rebalance_ms = request.rebalance_ms
        member.assignor = request.assignor or member.assignor
        member.rack = request.rack or member.rack
        member.client_id, member.client_host = request.client_id, request.client_host
        return before != (member.topics, member.assignor, member.rebalance_ms, member.rack)

    def _check_size(self, request: ConsumerGroupHeartbeat) -> None:
        if request.topics is None:
            return
        wanted = ConsumerMember(request.member, request.instance, request.rack, topics=request.topics)
        error = self._replies.holdings.refusal(request.group, request.member, wanted.size)
        if error:
            raise Refused(error, f"{len(request.topics)} topics: more than a member, its group or this broker may keep")

    # Epochs and targets

    def _is_new_wish(self, group: ConsumerGroup, member: ConsumerMember) -> bool:
        """Would the target look different because of this member?"""
        return member.id not in group.target or group.wishes.get(member.id) != (member.topics, member.assignor)

    def _maybe_bump(self, group: ConsumerGroup, changes: list[Record], *, force: bool) -> None:
        counts = {t: n for t in group.subscribed if (n := self._replies.topics.partition_count(t)) is not None}
        if force or counts != group.partition_counts:
            group.partition_counts = counts
            self._bump(group)
            changes += [records.topics_record(group, self._replies.topics), records.epoch_record(group)]

    def _bump(self, group: ConsumerGroup) -> None:
        group.epoch += 1
        self._replies.tell(EpochBumped(group=group.name, epoch=group.epoch, n_members=len(group.members)))

    def _assign(self, group: ConsumerGroup, changes: list[Record]) -> None:
        group.assignor = group.preferred_assignor(self._replies.settings.consumer_assignors[0])
        wishes = {m.id: Wish(m.topics, m.instance) for m in group.members.values()}
        target = SERVER_ASSIGNORS[group.assignor](wishes, group.partition_counts, group.target)
        moved = [member_id for member_id in wishes if group.target.get(member_id) != target[member_id]]
        group.target, group.target_epoch = target, group.epoch
        group.wishes = {m.id: (m.topics, m.assignor) for m in group.members.values()}
        changes += [records.target_record(group, member_id, self._replies.topics) for member_id in moved]
        changes.append(records.target_epoch_record(group))

    # Leaving

    def _leave(self, token: Token, request: ConsumerGroupHeartbeat) -> None:
        if request.epoch < LEAVE_STATIC_EPOCH or (request.epoch == LEAVE_STATIC_EPOCH and request.instance is None):
            raise Refused(ErrorCode.INVALID_REQUEST, f"epoch {request.epoch} means nothing here")
        group = self._groups.consumer_for_heartbeat(request.group, create=False)
        if isinstance(group, ErrorCode):
            raise Refused(group, f"no consumer group {request.group!r} here")
        check_instance(group, request)
        member = group.members.get(request.member)
        if member is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"{request.member!r} is not in the group")
        changes: list[Record] = []
        if request.epoch == LEAVE_EPOCH:
            changes = self._remove(group, member, "left")
        else:
            # It will be back: the assignment waits for it as long as a session lasts.
            member.previous_epoch, member.epoch = member.epoch, LEAVE_STATIC_EPOCH
            self._replies.timers.cancel(Timer("revoke", group.name, member.id))
            self._replies.arm(Timer("consumer", group.name, member.id), self._replies.settings.consumer_session_ms)
            changes = [records.current_record(group, member, self._replies.topics)]
        result = ConsumerGroupHeartbeatResult(ErrorCode.NONE, None, request.member, request.epoch)
        self._answer_when_durable(token, group, changes, result)

    def expired(self, group: ConsumerGroup, member_id: str, reason: str) -> None:
        """A timer ran out: fence the member; the next heartbeat of anyone computes the new target."""
        changes = self._remove(group, group.members[member_id], reason)
        self._replies.append(group.name, changes, nothing, nothing)

    def _remove(self, group: ConsumerGroup, member: ConsumerMember, reason: str) -> list[Record]:
        self.cancel(group, member.id)
        self._replies.holdings.drop(group.name, member.id)
        group.remove(member)
        group.state_ms = self._replies.wall_ms()
        self._replies.tell(MemberRemoved(group=group.name, member=member.id, instance=member.instance, reason=reason))
        self._bump(group)
        return [*records.member_tombstones(group.name, member.id), records.epoch_record(group)]

    # Timers and answers

    def _arm(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._replies.arm(Timer("consumer", group.name, member.id), self._replies.settings.consumer_session_ms)
        revoke = Timer("revoke", group.name, member.id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._replies.timers.cancel(revoke)
        elif not self._replies.timers.is_armed(revoke):
            self._replies.arm(revoke, member.rebalance_ms)

    def cancel(self, group: ConsumerGroup, member_id: str) -> None:
        self._replies.timers.cancel(Timer("consumer", group.name, member_id))
        self._replies.timers.cancel(Timer("revoke", group.name, member_id))

    def _answer_when_durable(
        self, token: Token, group: ConsumerGroup, changes: list[Record], result: ConsumerGroupHeartbeatResult
    ) -> None:
        refused = ConsumerGroupHeartbeatResult(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, "the offsets log cannot be written", result.member, result.epoch
        )
        if changes:
            self._replies.append(
                group.name,
                changes,
                lambda _now: self._replies.answer(token, result),
                lambda _now: self._replies.answer(token, refused),
            )
        else:
            self._replies.answer(token, result)

    def resume(self, group: ConsumerGroup) -> None:
        """After loading: every member has a whole session to be heard of again."""
        group.wishes = {m.id: (m.topics, m.assignor) for m in group.members.values()}
        group.assignor = group.preferred_assignor(self._replies.settings.consumer_assignors[0])
        group.partition_counts = {
            t: n for t in group.subscribed if (n := self._replies.topics.partition_count(t)) is not None
        }
        for member in group.members.values():
            self._arm(group, member)
