"""OffsetCommit and OffsetFetch. See docs/group-protocol.md; a committed offset is a 2011 offset (§1.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, gatherResults, succeed

from consumers.group_protocol.coordinator import requests as ask
from consumers.group_protocol.coordinator import results as said
from kafka2011.types import TopicPartition
from since2011.server.handlers.call import MANY, Answer, answer_of
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from consumers.group_protocol.service import CoordinatorService
    from since2011.server.handlers.call import Call


async def offset_commit(service: CoordinatorService, call: Call) -> Answer:
    """Answered when the commit is as safe as the offsets topic asks for: on disk, with its own settings.

    A commit of very many partitions is taken in slices, each a commit of its own with the same credentials: what a
    refusal concerns is said partition by partition anyway.
    """
    body = call.body
    rows = [(topic.name, one) for topic in body.topics for one in topic.partitions]
    waiting: list[Deferred[list[ErrorCode]]] = []
    for begin in range(0, len(rows), MANY):
        if begin:
            await service.modern.breathe()
        waiting.append(_commit(service, call, rows[begin : begin + MANY]))
    errors = iter([error for slice_ in await gatherResults(waiting) for error in slice_])
    answer = Struct(topics=[
        Struct(name=topic.name, partitions=[Struct(index=one.index, error=next(errors)) for one in topic.partitions])
        for topic in body.topics
    ])  # fmt: skip
    return answer_of(len(rows), answer)


def _commit(service: CoordinatorService, call: Call, rows: list[tuple[str, Struct]]) -> Deferred[list[ErrorCode]]:
    body = call.body
    if error := service.group_error(body.group):
        return succeed([error] * len(rows))
    offsets = tuple(
        ask.OffsetToCommit(topic, one.index, one.offset, one.leader_epoch, one.metadata) for topic, one in rows
    )
    epoch, version = body.generation_or_epoch, call.version
    request = ask.OffsetCommit(body.group, epoch, body.member, offsets, body.instance, version, body.retention_ms)
    answer = service.groups.ask(request, said.OffsetCommitResult)
    return answer.addCallback(lambda found: [one.error for one in found.partitions])


async def offset_fetch(service: CoordinatorService, call: Call) -> Answer:
    """One group up to version 7, several from 8 on."""
    body = call.body
    if call.version < 8:
        only = await _fetch_group(service, body.group, body.topics, None, -1, body.require_stable)
        if only.error and call.version < 2:
            _spread(only, body.topics)
        return answer_of(_n_rows([only]), Struct(topics=only.topics, error=only.error))
    groups = [
        await _fetch_group(service, one.group, one.topics, one.member, one.member_epoch, body.require_stable)
        for one in body.groups
    ]
    return answer_of(_n_rows(groups), Struct(groups=groups))


def _n_rows(groups: list[Struct]) -> int:
    return sum(len(topic.partitions) for group in groups for topic in group.topics)


async def _fetch_group(
    service: CoordinatorService, group: str, topics: list[Struct] | None, member: str | None, epoch: int, stable: bool
) -> Struct:
    if error := service.group_error(group):
        return Struct(group=group, topics=[], error=error)
    wanted = None
    if topics is not None:
        wanted = tuple(TopicPartition(topic.name, index) for topic in topics for index in topic.partitions)
    request = ask.OffsetFetch(group, wanted, member, epoch, stable)
    answer = await service.groups.ask(request, said.OffsetFetchResult)
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
