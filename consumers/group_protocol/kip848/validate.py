"""What makes the coordinator refuse a heartbeat.

See docs/group-protocol.md, steps 1 and 2.
"""

from __future__ import annotations

from consumers.group_protocol.coordinator.holdings import MAX_INSTANCE, MAX_NAME, is_name
from consumers.group_protocol.coordinator.requests import JOIN_EPOCH, ConsumerGroupHeartbeat
from consumers.group_protocol.kip848.group import ConsumerGroup, ConsumerMember
from since2011.wire.error_codes import ErrorCode


class Refused(Exception):
    """Answer with ``error`` and this sentence; nothing has changed."""

    def __init__(self, error: ErrorCode, sentence: str) -> None:
        self.error = error
        super().__init__(sentence)


def check_combination(request: ConsumerGroupHeartbeat, assignors: tuple[str, ...]) -> None:
    """Step 1: is this a request at all?"""
    if not is_name(request.group):
        raise Refused(ErrorCode.INVALID_GROUP_ID, f"a group needs a name, of at most {MAX_NAME} bytes")
    if not is_name(request.member):
        raise Refused(ErrorCode.INVALID_REQUEST, f"a member states an id of its own, of at most {MAX_NAME} bytes")
    if request.instance is not None and not is_name(request.instance, MAX_INSTANCE):
        raise Refused(ErrorCode.INVALID_REQUEST, f"an instance id is null or has 1 to {MAX_INSTANCE} bytes")
    if not is_name(request.rack or "-"):
        raise Refused(ErrorCode.INVALID_REQUEST, f"a rack has at most {MAX_NAME} bytes")
    if request.regex:
        raise Refused(ErrorCode.INVALID_REQUEST, "subscription by regular expression is not offered; name the topics")
    if request.epoch == JOIN_EPOCH:
        if request.rebalance_ms <= 0:
            raise Refused(ErrorCode.INVALID_REQUEST, "a joining member states its rebalance timeout")
        if request.topics is None:
            raise Refused(ErrorCode.INVALID_REQUEST, "a joining member states its topics")
        if request.owned is None or request.owned:
            raise Refused(ErrorCode.INVALID_REQUEST, "a joining member owns nothing and says so")
    if request.assignor and request.assignor not in assignors:
        raise Refused(ErrorCode.UNSUPPORTED_ASSIGNOR, f"assignors here: {', '.join(assignors)}")


def check_instance(group: ConsumerGroup, request: ConsumerGroupHeartbeat) -> None:
    """Step 2, static members: one instance id, one holder."""
    if request.instance is None:
        return
    holder_id = group.instances.get(request.instance)
    if holder_id is None:
        if request.epoch != JOIN_EPOCH:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"instance {request.instance!r} is not in the group")
    elif holder_id != request.member:
        if request.epoch != JOIN_EPOCH:
            raise Refused(ErrorCode.FENCED_INSTANCE_ID, f"instance {request.instance!r} is held by another member")
        if not group.members[holder_id].is_away:
            raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID, f"instance {request.instance!r} has not left yet")


def check_epoch(member: ConsumerMember, request: ConsumerGroupHeartbeat) -> None:
    """Step 2: a smaller epoch is a lost answer only if it is the previous one and nothing new is claimed."""
    if request.epoch == member.epoch:
        return
    lost_answer = (
        request.epoch == member.previous_epoch
        and request.owned is not None
        and frozenset(request.owned) <= member.assigned
    )
    if request.epoch > member.epoch or not lost_answer:
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"epoch {request.epoch} is not this member's ({member.epoch}); give up all partitions and join again",
        )
