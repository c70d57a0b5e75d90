"""The classic rebalance: from someone coming or going to a new generation.

See docs/group-protocol.md. Three timers drive it: the join phase's deadline, the sync deadline, and the
session of each member.
"""

from __future__ import annotations

from consumers.group_protocol.coordinator.events import GroupStateChanged, MemberRemoved
from consumers.group_protocol.coordinator.group import ClassicGroup, State
from consumers.group_protocol.coordinator.member import Member
from consumers.group_protocol.coordinator.records import group_record
from consumers.group_protocol.coordinator.replies import Replies, nothing
from consumers.group_protocol.coordinator.results import JoinedMember, JoinGroupResult, SyncGroupResult
from consumers.group_protocol.coordinator.timers import Timer
from since2011.wire.error_codes import ErrorCode


class Rebalance:
    """Moves groups between their states. Thread: one."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies

    # Preparing

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Begin a join phase; the old generation stays current until it ends."""
        if group.state is State.COMPLETING:
            for member in group.members.values():
                self._give(group, member, b"")
                self._answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        self._replies.timers.cancel(Timer("sync", group.name))
        group.is_initial = group.state is State.EMPTY
        self._move(group, State.PREPARING, reason)
        if group.is_initial:
            delay_ms = self._replies.settings.initial_rebalance_delay_ms
            group.newcomer = False
            group.initial_remaining_ms = max(group.rebalance_ms - delay_ms, 0)
            self._replies.arm(Timer("join", group.name), delay_ms)
        else:
            self._replies.arm(Timer("join", group.name), group.rebalance_ms)

    def maybe_complete_join(self, group: ClassicGroup) -> None:
        """End the join phase when everyone known has joined and nobody is about to."""
        if group.state is State.PREPARING and group.all_joined:
            self._complete_join(group)

    def join_deadline(self, group: ClassicGroup) -> None:
        """The join phase took as long as it may; the initial one is prolonged while members keep arriving (§5)."""
        if group.is_initial and group.newcomer and group.initial_remaining_ms > 0:
            delay_ms = min(self._replies.settings.initial_rebalance_delay_ms, group.initial_remaining_ms)
            group.newcomer = False
            group.initial_remaining_ms -= delay_ms
            self._replies.arm(Timer("join", group.name), delay_ms)
        else:
            self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> None:
        for member in [m for m in group.members.values() if not m.joining and not m.is_static]:
            self.forget(group, member, "did not join in time")
        if group.members and not group.n_joining:
            # Only absent static members are left: they may come back until their session ends.
            self._replies.arm(Timer("join", group.name), group.rebalance_ms)
            return
        self._replies.timers.cancel(Timer("join", group.name))
        group.generation += 1
        if not group.members:
            group.protocol = None
            self._move(group, State.EMPTY, "no members left")
            self._replies.append(group.name, [group_record(group)], nothing, nothing)
            return
        if not group.members[group.leader or ""].joining:
            group.leader = next(member.id for member in group.members.values() if member.joining)
        group.protocol = group.vote()
        self._move(group, State.COMPLETING, "join phase complete")
        group.unsynced = set(group.members)
        for member in list(group.members.values()):
            self._give(group, member, b"")
            self.answer_join(group, member)
        self._replies.arm(Timer("sync", group.name), group.rebalance_ms)

    def answer_join(self, group: ClassicGroup, member: Member) -> None:
        """Answer a parked join with the current generation; the list of members goes to the leader only."""
        if not member.joining:
            return
        token, member.joining, member.join_token, member.is_new = member.join_token, False, None, False
        self._replies.answer(token, self.joined(group, member.id))
        self.restart_session(group, member)

    def joined(self, group: ClassicGroup, member_id: str, leader: str | None = None) -> JoinGroupResult:
        """The successful answer to a join. ``leader`` names someone else than the group's own."""
        named = leader or group.leader or ""
        members = tuple(
            JoinedMember(each.id, each.instance, each.metadata(group.protocol)) for each in group.members.values()
        )
        return JoinGroupResult(
            ErrorCode.NONE,
            group.generation,
            group.protocol or "",
            named,
            member_id,
            members if named == member_id else (),
            group.protocol_type,
        )

    # Completing

    def complete_sync(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        """The leader's assignment is durable: hand it out."""
        for member in group.members.values():
            self._give(group, member, assignments.get(member.id, b""))
        self._move(group, State.STABLE, "assignment handed out")
        for member in group.members.values():
            self._answer_sync(member, ErrorCode.NONE)
            self.restart_session(group, member)

    def _give(self, group: ClassicGroup, member: Member, assignment: bytes) -> None:
        member.assignment = assignment
        self._replies.holdings.hold(group.name, member.id, member.size)

    def sync_deadline(self, group: ClassicGroup) -> None:
        """Whoever never fetched its assignment is put out."""
        if group.state in (State.COMPLETING, State.STABLE) and group.unsynced:
            for member_id in sorted(group.unsynced):
                self.forget(group, group.members[member_id], "did not sync in time")
            self.after_removal(group, "a member did not sync in time")

    def _answer_sync(self, member: Member, error: ErrorCode) -> None:
        if member.syncing:
            token, member.syncing, member.sync_token = member.sync_token, False, None
            self._replies.answer(token, SyncGroupResult(error, b"" if error else member.assignment))

    # Members going

    def remove(self, group: ClassicGroup, member: Member, reason: str) -> None:
        """Put a member out and let the group go on without it."""
        self.forget(group, member, reason)
        self.after_removal(group, reason)

    def after_removal(self, group: ClassicGroup, reason: str) -> None:
        """Stable or Completing begin a rebalance; a join phase may be complete now."""
        if group.state in (State.STABLE, State.COMPLETING):
            self.prepare(group, reason)
        self.maybe_complete_join(group)

    def fence(self, member: Member, error: ErrorCode) -> None:
        """Answer whatever a member has parked with ``error``."""
        join_token, sync_token = member.join_token, member.sync_token
        member.joining = member.syncing = False
        member.join_token = member.sync_token = None
        self._replies.answer(join_token, JoinGroupResult(error, member=member.id))
        self._replies.answer(sync_token, SyncGroupResult(error))

    def forget(self, group: ClassicGroup, member: Member, reason: str) -> None:
        self.fence(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._replies.timers.cancel(Timer("session", group.name, member.id))
        group.remove(member)
        self._replies.holdings.drop(group.name, member.id)
        self._replies.tell(MemberRemoved(group=group.name, member=member.id, instance=member.instance, reason=reason))

    # Sessions

    def restart_session(self, group: ClassicGroup, member: Member) -> None:
        self._replies.arm(Timer("session", group.name, member.id), member.session_ms)

    def session_expired(self, group: ClassicGroup, member_id: str) -> None:
        """A parked member is alive by definition, unless it is new: its socket may be gone unnoticed."""
        member = group.members[member_id]
        if member.is_new or not member.is_parked:
            self.remove(group, member, "session expired")

    def pending_expired(self, group: ClassicGroup, member_id: str) -> None:
        """An id was handed out and never used."""
        group.pending.discard(member_id)
        self._replies.holdings.drop(group.name, member_id)
        self.maybe_complete_join(group)

    def _move(self, group: ClassicGroup, state: State, reason: str) -> None:
        before, group.state, group.state_ms = group.state, state, self._replies.wall_ms()
        self._replies.tell(
            GroupStateChanged(
                group=group.name,
                before=before.value,
                after=state.value,
                generation=group.generation,
                n_members=len(group.members),
                reason=reason,
            )
        )

    def remove_stale(self, group: ClassicGroup, error: ErrorCode, reason: str) -> None:
        """The group is no longer ours: answer everyone who waits, cancel every timer."""
        for member in group.members.values():
            self.fence(member, error)
            self._replies.timers.cancel(Timer("session", group.name, member.id))
        for member_id in group.pending:
            self._replies.timers.cancel(Timer("pending", group.name, member_id))
        self._replies.timers.cancel(Timer("join", group.name))
        self._replies.timers.cancel(Timer("sync", group.name))
        self._move(group, State.DEAD, reason)
