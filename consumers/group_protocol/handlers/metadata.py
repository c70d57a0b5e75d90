"""Metadata and FindCoordinator: who is there, who leads what, who coordinates whom.

Spec: modern-group-protocol §1.5, §3.1, §23 (what an empty list of topics means).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consumers.group_protocol.cluster import ClusterView, topic_id
from consumers.group_protocol.codec import NO_UUID, Struct
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.handlers.call import MANY, Answer, answer_of
from consumers.group_protocol.handlers.refusals import refusal
from kafka2011.errors import Kafka2011Error

if TYPE_CHECKING:
    from consumers.group_protocol.handlers.call import Call
    from consumers.group_protocol.service import Modern

_GROUP, _TRANSACTION = 0, 1


async def metadata(modern: Modern, call: Call) -> Answer:
    """Describe the brokers and the topics asked for; create those that may be created."""
    asked = call.body.topics
    if asked is None or (call.version == 0 and not asked):
        asked, refused = [Struct(name=name) for name in sorted(modern.view().topics)], {}
    else:
        refused = await _create_missing(modern, call, asked)
    view = modern.view()
    topics: list[Struct] = []
    for begin in range(0, len(asked), MANY):
        if begin:
            await modern.breathe()
        topics += [_asked_topic(view, topic, refused) for topic in asked[begin : begin + MANY]]
    brokers = [modern.advertised(broker, call.caller.reached) for broker in view.brokers.values()]
    answer = Struct(
        brokers=[Struct(id=b.broker_id, host=b.host, port=b.port, rack=None) for b in brokers],
        cluster_id=modern.cluster_id,
        controller=min(view.brokers),
        topics=topics,
    )
    return answer_of(sum(len(topic.partitions) + 1 for topic in topics), answer)


async def _create_missing(modern: Modern, call: Call, asked: list[Struct]) -> dict[str, ErrorCode]:
    """Create what may be created of the topics asked for; the codes of those that cannot be."""
    refused: dict[str, ErrorCode] = {}
    missing: dict[str, None] = {}
    known = modern.view().topics
    unknown = dict.fromkeys(topic.name for topic in asked if topic.name is not None and topic.name not in known)
    for n, name in enumerate(unknown):
        if n % MANY == MANY - 1:
            await modern.breathe()
        try:
            modern.check_new(name, wanted=call.body.auto_create)
            missing[name] = None
        except Kafka2011Error as error:
            refused[name], _ = refusal(error)
    if missing:
        for name, reason in (await modern.creation.create(missing, call.caller.address)).items():
            code, _ = refusal(reason)
            # A client that asks about a topic asks again of itself: it is told the usual reason to.
            later = code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
            refused[name] = ErrorCode.LEADER_NOT_AVAILABLE if later else code
    return refused


def _asked_topic(view: ClusterView, asked: Struct, refused: dict[str, ErrorCode]) -> Struct:
    if asked.name is None:
        name = view.ids.get(asked.topic_id)
        if name is None:
            return Struct(error=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id, partitions=[])
        return _topic(view, name)
    if asked.name in view.topics:
        return _topic(view, asked.name)
    # Created, but without a place in the numbering yet: the client asks again in a moment.
    error = refused.get(asked.name, ErrorCode.LEADER_NOT_AVAILABLE)
    return Struct(error=error, name=asked.name, topic_id=NO_UUID, partitions=[])


def _topic(view: ClusterView, name: str) -> Struct:
    partitions = []
    for number, place in enumerate(view.topics[name]):
        live = place.broker_id in view.brokers
        partitions.append(
            Struct(
                error=ErrorCode.NONE if live else ErrorCode.LEADER_NOT_AVAILABLE,
                index=number,
                leader=place.broker_id if live else -1,
                leader_epoch=0,
                replicas=[place.broker_id],
                isr=[place.broker_id] if live else [],
                offline=[] if live else [place.broker_id],
            )
        )
    return Struct(error=ErrorCode.NONE, name=name, topic_id=topic_id(name), internal=False, partitions=partitions)


async def find_coordinator(modern: Modern, call: Call) -> Struct:
    """Name the broker that holds the group's part of the offsets log."""
    if call.body.key_type not in (_GROUP, _TRANSACTION):
        sentence = f"coordinator type {call.body.key_type}; 0 is a group, 1 a transaction"
        return Struct(error=ErrorCode.INVALID_REQUEST, error_message=sentence)
    if call.body.key_type == _GROUP and not call.body.key:
        return Struct(error=ErrorCode.INVALID_GROUP_ID, error_message="a group has a name")
    if modern.group_error(call.body.key) is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        # Ours, and we may not speak for it: whoever may is known to the others.
        return Struct(error=ErrorCode.COORDINATOR_NOT_AVAILABLE, error_message="cut off, or its offsets are damaged")
    broker = modern.advertised(modern.coordinator_of(call.body.key), call.caller.reached)
    return Struct(error=ErrorCode.NONE, node=broker.broker_id, host=broker.host, port=broker.port)
