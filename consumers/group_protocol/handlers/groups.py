"""The group requests: bytes to the coordinator's values and back. See docs/modern-port.md, docs/group-protocol.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from consumers.group_protocol.coordinator import requests as ask
from consumers.group_protocol.coordinator import results as said
from consumers.group_protocol.coordinator.holdings import MAX_NAME
from kafka2011.types import TopicPartition
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from consumers.group_protocol.service import CoordinatorService
    from since2011.server.handlers.call import Call


async def join_group(service: CoordinatorService, call: Call) -> Struct:
    """Parked until the join phase ends."""
    body = call.body
    if error := service.group_error(body.group):
        return Struct(error=error, member=body.member)
    request = ask.JoinGroup(
        body.group,
        body.session_ms,
        body.rebalance_ms if call.version >= 1 else body.session_ms,
        body.member,
        body.type,
        tuple(ask.Protocol(one.name, one.metadata) for one in body.protocols),
        body.instance,
        call.client_id[:MAX_NAME],
        f"/{call.caller.address}",
        call.version,
    )
    answer = await service.groups.ask(request, said.JoinGroupResult)
    members = [Struct(member=m.member, instance=m.instance, metadata=m.metadata) for m in answer.members]
    return Struct(
        error=answer.error,
        generation=answer.generation,
        protocol_type=None if answer.error else body.type,
        protocol=answer.protocol,
        leader=answer.leader,
        member=answer.member,
        members=members,
    )


async def sync_group(service: CoordinatorService, call: Call) -> Struct:
    """Parked until the leader's assignment is there."""
    body = call.body
    if error := service.group_error(body.group):
        return Struct(error=error)
    given = tuple(ask.MemberAssignment(one.member, one.assignment) for one in body.assignments)
    request = ask.SyncGroup(body.group, body.generation, body.member, given, body.instance)
    answer = await service.groups.ask(request, said.SyncGroupResult)
    told = {} if answer.error else {"protocol_type": body.protocol_type, "protocol": body.protocol}
    return Struct(error=answer.error, assignment=answer.assignment, **told)


async def heartbeat(service: CoordinatorService, call: Call) -> Struct:
    """I am alive; the answer may say that the group is being rebalanced."""
    body = call.body
    if error := service.group_error(body.group):
        return Struct(error=error)
    request = ask.Heartbeat(body.group, body.generation, body.member, body.instance)
    return Struct(error=(await service.groups.ask(request, said.HeartbeatResult)).error)


async def leave_group(service: CoordinatorService, call: Call) -> Struct:
    """One member up to version 2, several from 3 on."""
    body = call.body
    if error := service.group_error(body.group):
        return Struct(error=error, members=[])
    if call.version < 3:
        leaving: tuple[ask.LeavingMember, ...] = (ask.LeavingMember(body.member),)
    else:
        leaving = tuple(ask.LeavingMember(one.member, one.instance) for one in body.members)
    answer = await service.groups.ask(ask.LeaveGroup(body.group, leaving), said.LeaveGroupResult)
    members = [Struct(member=m.member, instance=m.instance, error=m.error) for m in answer.members]
    return Struct(error=answer.single_error if call.version < 3 else answer.error, members=members)


async def describe_groups(service: CoordinatorService, call: Call) -> Struct:
    """State, protocol and members of each group."""
    errors = {group: service.group_error(group) for group in call.body.groups}
    here = tuple(group for group, error in errors.items() if not error)
    answer = await service.groups.ask(ask.DescribeGroups(here), said.DescribeGroupsResult)
    found = {group.group: group for group in answer.groups}
    rows = [found.get(name) or said.DescribedGroup(errors[name], name, state="") for name in call.body.groups]
    return Struct(groups=[
        Struct(error=row.error, group=row.group, state=row.state, type=row.protocol_type, protocol=row.protocol,
               members=[Struct(member=m.member, instance=m.instance, client=m.client_id, host=m.client_host,
                               metadata=m.metadata, assignment=m.assignment) for m in row.members])
        for row in rows
    ])  # fmt: skip


async def list_groups(service: CoordinatorService, call: Call) -> Struct:
    """The groups this broker coordinates; COORDINATOR_LOAD_IN_PROGRESS is set while there may be more."""
    answer = await service.groups.ask(ask.ListGroups(), said.ListGroupsResult)
    error = answer.error or (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if service.is_loading else ErrorCode.NONE)
    return Struct(error=error, groups=[
        Struct(group=g.group, type=g.protocol_type, state=g.state, group_type=g.group_type)
        for g in answer.groups
        if _is_asked_for(g.state, call.body.states) and _is_asked_for(g.group_type, call.body.types)
    ])  # fmt: skip


def _is_asked_for(what: str, asked: list[str]) -> bool:
    """No filter asks for everything; case does not matter."""
    return not asked or what.lower() in {one.lower() for one in asked}


async def consumer_group_heartbeat(service: CoordinatorService, call: Call) -> Struct:
    """KIP-848: join, heartbeat, acknowledge and leave in one request. Topics are ids on the wire, names inside."""
    body = call.body
    if error := service.group_error(body.group):
        return Struct(error=error)
    owned = None
    if body.owned is not None:
        rows = [(service.topic_name(one.topic_id) or str(one.topic_id), one.partitions) for one in body.owned]
        owned = tuple(TopicPartition(topic, partition) for topic, partitions in rows for partition in partitions)
    request = ask.ConsumerGroupHeartbeat(
        body.group,
        body.member,
        body.epoch,
        body.instance,
        body.rack,
        body.rebalance_ms,
        None if body.topics is None else tuple(body.topics),
        body.regex or None,
        body.assignor,
        owned,
        call.client_id[:MAX_NAME],
        f"/{call.caller.address}",
    )
    answer = await service.groups.ask(request, said.ConsumerGroupHeartbeatResult)
    return Struct(
        error=answer.error,
        error_message=answer.message,
        member=answer.member,
        epoch=answer.epoch,
        heartbeat_ms=answer.heartbeat_ms,
        assignment=None if answer.assignment is None else assignment_of(service, answer.assignment),
    )


def assignment_of(service: CoordinatorService, assignment: tuple[TopicPartition, ...]) -> Struct:
    """Partitions as KIP-848 writes them: by the ids of their topics."""
    rows: dict[str, list[int]] = {}
    for one in assignment:
        rows.setdefault(one.topic, []).append(one.partition)
    return Struct(topics=[
        Struct(topic_id=service.topic_id(topic), name=topic, partitions=partitions)
        for topic, partitions in rows.items()
    ])  # fmt: skip
