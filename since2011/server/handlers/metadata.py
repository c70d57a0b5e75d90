"""Metadata: the brokers, and the topics asked for with their leaders.

Behavior:
- A topic that is not there is created if the client allows it and ``auto.create.topics.enable`` is on: a modern one,
  unless the broker's ``log.format`` is 2011.
- Modern topics come from the cluster's metadata, those of 2011 from the registry (design D16).
- Nobody is refused anything here, so authorized operations, where asked for, are all there are.

Version notes:
- 0 takes an empty list for all topics, later versions null. 2 cluster id; 4 says whether topics may be created; 8 to 10
  operations on the cluster; 9 flexible; 10 topic ids; 12 topics may be asked for by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from since2011.server.handlers.call import MANY, Answer, answer_of
from since2011.topics.cluster import ClusterView
from since2011.topics.image import TopicImage
from since2011.topics.internal import INTERNAL_TOPICS
from since2011.wire.codec import NO_UUID, Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import refusal

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

NOT_ASKED = -(1 << 31)
TOPIC_OPERATIONS = sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))
"""Read, write, create, delete, alter, describe, describe and alter configs."""
CLUSTER_OPERATIONS = sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))
"""Create, alter, describe, cluster action, describe and alter configs, idempotent write."""


async def metadata(modern: ModernBroker, call: Call) -> Answer:
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
    if call.body.topic_ops:
        for topic in topics:
            topic.ops = TOPIC_OPERATIONS
    brokers = [modern.advertised(broker, call.caller.reached) for broker in view.brokers.values()]
    answer = Struct(
        brokers=[Struct(id=b.broker_id, host=b.host, port=b.port, rack=None) for b in brokers],
        cluster_id=modern.cluster_id,
        controller=modern.controller_id(),
        topics=topics,
        cluster_ops=CLUSTER_OPERATIONS if call.body.cluster_ops else NOT_ASKED,
    )
    return answer_of(sum(len(topic.partitions) + 1 for topic in topics), answer)


async def _create_missing(modern: ModernBroker, call: Call, asked: list[Struct]) -> dict[str, ErrorCode]:
    """Create what may be created of the topics asked for; the codes of those that cannot be."""
    refused: dict[str, ErrorCode] = {}
    missing: dict[str, None] = {}
    known = modern.view().topics
    unknown = dict.fromkeys(topic.name for topic in asked if not _is_by_id(topic) and topic.name not in known)
    for n, name in enumerate(unknown):
        if n % MANY == MANY - 1:
            await modern.breathe()
        try:
            modern.check_new(name, wanted=call.body.auto_create)
            missing[name] = None
        except Kafka2011Error as error:
            refused[name], _ = refusal(error)
    if missing:
        for name, reason in (await modern.create_topics(missing, call.caller.address)).items():
            code, _ = refusal(reason)
            # A client that asks about a topic asks again of itself: it is told the usual reason to.
            later = code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
            refused[name] = ErrorCode.LEADER_NOT_AVAILABLE if later else code
    return refused


def _is_by_id(asked: Struct) -> bool:
    """Whether a topic is asked for by its id: Java's AdminClient then leaves the name empty instead of null."""
    return asked.name is None or getattr(asked, "topic_id", NO_UUID) != NO_UUID


def _asked_topic(view: ClusterView, asked: Struct, refused: dict[str, ErrorCode]) -> Struct:
    if _is_by_id(asked):
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
    image = view.modern.get(name)
    return Struct(
        error=ErrorCode.NONE,
        name=name,
        topic_id=view.id_of(name),
        internal=name in INTERNAL_TOPICS,
        partitions=_partitions_2011(view, name) if image is None else _partitions(view, image),
    )


def _partitions(view: ClusterView, topic: TopicImage) -> list[Struct]:
    rows = []
    for number, partition in enumerate(topic.partitions):
        has_leader = partition.leader in view.brokers
        rows.append(
            Struct(
                error=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
                index=number,
                leader=partition.leader if has_leader else -1,
                leader_epoch=partition.leader_epoch,
                replicas=list(partition.replicas),
                isr=list(partition.isr),
                offline=[broker for broker in partition.replicas if broker not in view.brokers],
            )
        )
    return rows


def _partitions_2011(view: ClusterView, name: str) -> list[Struct]:
    rows = []
    for number, place in enumerate(view.topics[name]):
        live = place.broker_id in view.brokers
        rows.append(
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
    return rows
