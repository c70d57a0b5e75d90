"""OffsetDelete, DeleteGroups, ConsumerGroupDescribe: what people do to groups.

Behavior:
- OffsetDelete: GROUP_SUBSCRIBED_TO_TOPIC for topics somebody in the group still reads; the others are deleted.
- DeleteGroups: NON_EMPTY_GROUP while it has members; its offsets go with it.
- ConsumerGroupDescribe: KIP-848 groups only; GROUP_ID_NOT_FOUND for others.

Version notes: OffsetDelete 0 is not flexible; DeleteGroups is from 2 on; ConsumerGroupDescribe always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consumers.group_protocol.coordinator import requests as ask
from consumers.group_protocol.coordinator import results as said
from consumers.group_protocol.handlers.groups import assignment_of
from kafka2011.types import TopicPartition
from since2011.wire.codec import Struct

if TYPE_CHECKING:
    from consumers.group_protocol.service import CoordinatorService
    from since2011.server.handlers.call import Call


async def offset_delete(service: CoordinatorService, call: Call) -> Struct:
    """Forget committed offsets; answered when the deletion is durable."""
    body = call.body
    if error := service.group_error(body.group):
        return Struct(error=error, topics=[])
    wanted = tuple(TopicPartition(topic.name, one.index) for topic in body.topics for one in topic.partitions)
    answer = await service.groups.ask(ask.OffsetDelete(body.group, wanted), said.OffsetDeleteResult)
    if answer.error:
        return Struct(error=answer.error, topics=[])
    errors = iter([one.error for one in answer.partitions])
    topics = [
        Struct(name=topic.name, partitions=[Struct(index=one.index, error=next(errors)) for one in topic.partitions])
        for topic in body.topics
    ]
    return Struct(error=answer.error, topics=topics)


async def delete_groups(service: CoordinatorService, call: Call) -> Struct:
    """Forget groups without members, and their offsets."""
    errors = {group: service.group_error(group) for group in call.body.groups}
    here = tuple(group for group, error in errors.items() if not error)
    answer = await service.groups.ask(ask.DeleteGroups(here), said.DeleteGroupsResult)
    errors |= {one.group: one.error for one in answer.groups}
    return Struct(results=[Struct(group=group, error=errors[group]) for group in call.body.groups])


async def consumer_group_describe(service: CoordinatorService, call: Call) -> Struct:
    """Epochs, members and what each of them owns and shall own."""
    errors = {group: service.group_error(group) for group in call.body.groups}
    here = tuple(group for group, error in errors.items() if not error)
    answer = await service.groups.ask(ask.ConsumerGroupDescribe(here), said.ConsumerGroupDescribeResult)
    found = {group.group: group for group in answer.groups}
    rows = [found.get(name) or said.DescribedConsumerGroup(errors[name], name, state="") for name in call.body.groups]
    return Struct(groups=[_described(service, row) for row in rows])


def _described(service: CoordinatorService, row: said.DescribedConsumerGroup) -> Struct:
    members = [
        Struct(
            member=each.member,
            instance=each.instance,
            epoch=each.epoch,
            client_id=each.client_id,
            client_host=each.client_host,
            topics=list(each.topics),
            assignment=assignment_of(service, each.assignment),
            target=assignment_of(service, each.target),
        )
        for each in row.members
    ]
    return Struct(
        error=row.error,
        group=row.group,
        state=row.state,
        epoch=row.epoch,
        target_epoch=row.target_epoch,
        assignor=row.assignor,
        members=members,
    )
