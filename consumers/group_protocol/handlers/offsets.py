"""OffsetCommit and OffsetFetch. Spec: modern-group-protocol §3.6, §3.7; a committed offset is a 2011 offset (§1.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from consumers.group_protocol.codec import Struct
from consumers.group_protocol.coordinator import requests as ask
from consumers.group_protocol.coordinator import results as said
from kafka2011.types import TopicPartition

if TYPE_CHECKING:
    from consumers.group_protocol.handlers.call import Call
    from consumers.group_protocol.service import Modern


async def offset_commit(modern: Modern, call: Call) -> Struct:
    """Answered when the commit is on disk."""
    body = call.body
    offsets = tuple(
        ask.OffsetToCommit(topic.name, one.index, one.offset, one.leader_epoch, one.metadata)
        for topic in body.topics
        for one in topic.partitions
    )
    error = modern.group_error(body.group)
    if not error:
        request = ask.OffsetCommit(
            body.group, body.generation_or_epoch, body.member, offsets, body.instance, call.version
        )
        answer = await modern.groups.ask(request, said.OffsetCommitResult)
        errors = iter([one.error for one in answer.partitions])
    else:
        errors = iter([error] * len(offsets))
    return Struct(topics=[
        Struct(name=topic.name, partitions=[Struct(index=one.index, error=next(errors)) for one in topic.partitions])
        for topic in body.topics
    ])  # fmt: skip


async def offset_fetch(modern: Modern, call: Call) -> Struct:
    """One group up to version 7, several from 8 on."""
    body = call.body
    if call.version < 8:
        only = await _fetch_group(modern, body.group, body.topics, None, -1, body.require_stable)
        if only.error and call.version < 2:
            _spread(only, body.topics)
        return Struct(topics=only.topics, error=only.error)
    groups = [
        await _fetch_group(modern, one.group, one.topics, one.member, one.member_epoch, body.require_stable)
        for one in body.groups
    ]
    return Struct(groups=groups)


async def _fetch_group(
    modern: Modern, group: str, topics: list[Struct] | None, member: str | None, epoch: int, stable: bool
) -> Struct:
    if error := modern.group_error(group):
        return Struct(group=group, topics=[], error=error)
    wanted = None
    if topics is not None:
        wanted = tuple(TopicPartition(topic.name, index) for topic in topics for index in topic.partitions)
    request = ask.OffsetFetch(group, wanted, member, epoch, stable)
    answer = await modern.groups.ask(request, said.OffsetFetchResult)
    rows: dict[str, list[Struct]] = {topic.name: [] for topic in topics or ()} if not answer.error else {}
    for one in answer.offsets:
        rows.setdefault(one.topic, []).append(
            Struct(index=one.partition, offset=one.offset, leader_epoch=one.leader_epoch, metadata=one.metadata,
                   error=one.error)
        )  # fmt: skip
    return Struct(group=group, topics=[Struct(name=n, partitions=p) for n, p in rows.items()], error=answer.error)


def _spread(answer: Struct, topics: list[Struct] | None) -> None:
    """Version 1 has no error of its own: every partition carries it."""
    answer.topics = [
        Struct(name=topic.name, partitions=[
            Struct(index=index, offset=-1, metadata="", error=answer.error) for index in topic.partitions
        ])
        for topic in topics or ()
    ]  # fmt: skip
