"""Lead one member towards its target, giving up before taking.

See docs/group-protocol.md "Reconcile". Pure.

    keep = assigned ∩ target     drop = assigned − target     take = target − keep − what others hold
"""

from __future__ import annotations

from consumers.group_protocol.kip848.group import ConsumerGroup, ConsumerMember, MemberState, Partitions, Standing


def reconcile(group: ConsumerGroup, member: ConsumerMember, owned: Partitions | None) -> Standing:
    """Decide the member's next standing; ``owned`` is what it says it has, None when it did not say."""
    target = group.target.get(member.id, frozenset())
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if owned is None or owned & member.revoking:
            return Standing(member.state, member.epoch, member.assigned, member.revoking)
        return _advance(group, member, target, owned, member.epoch + 1)
    if member.state is MemberState.STABLE and member.epoch == group.target_epoch and member.assigned == target:
        return Standing(member.state, member.epoch, member.assigned)
    return _advance(group, member, target, owned, member.epoch)


def _advance(
    group: ConsumerGroup, member: ConsumerMember, target: Partitions, owned: Partitions | None, epoch: int
) -> Standing:
    keep = member.assigned & target
    drop = member.assigned - target
    if drop and (owned is None or owned & drop):
        return Standing(MemberState.UNREVOKED_PARTITIONS, epoch, keep, drop)
    wanted = target - keep
    blocked = group.held_by_others(member, wanted)
    state = MemberState.UNRELEASED_PARTITIONS if blocked else MemberState.STABLE
    return Standing(state, group.target_epoch, keep | (wanted - blocked))
