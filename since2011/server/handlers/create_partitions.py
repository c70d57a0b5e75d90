"""CreatePartitions: give topics more partitions, never fewer.

Behavior:
- ``count`` is how many there are to be in all. As many as there are, or fewer: INVALID_PARTITIONS.
- From then on a key's records go to another partition than before: a client computes hash(key) mod partitions. What was
  written stays where it is, so the order of a key's records holds on either side of the growth, not across it.
- Topics of 2011 have as many partitions as their brokers' settings say: INVALID_REQUEST.

Version notes:
- 2 flexible; 3 as 2.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from twisted.internet.threads import deferToThread

from kafka2011.errors import Kafka2011Error
from since2011.server.handlers.create_topics import refused_by_store
from since2011.topics.errors import InvalidRequest
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def create_partitions(modern: ModernBroker, call: Call) -> Struct:
    """Grow each, or say why not."""
    named = Counter(topic.name for topic in call.body.topics)
    results = []
    for topic in call.body.topics:
        answer = Struct(name=topic.name, error=ErrorCode.NONE, error_message=None)
        try:
            if named[topic.name] > 1:
                raise InvalidRequest(f"{topic.name[:250]} is named more than once")
            await _grow(modern, topic, validate_only=call.body.validate_only)
        except (Kafka2011Error, OSError) as error:
            answer.error, answer.error_message = refused_by_store(error)
        results.append(answer)
    return Struct(results=results)


async def _grow(modern: ModernBroker, topic: Struct, *, validate_only: bool) -> None:
    if topic.name not in modern.topics and topic.name in modern.view().topics:
        raise InvalidRequest(
            f"{topic.name} is a topic of 2011: its partitions are per broker; set topic.partition.count.map there"
        )
    by_hand = None if topic.assignments is None else [tuple(one.broker_ids) for one in topic.assignments]
    placed = modern.administration.place_growth(topic.name, topic.count, by_hand)
    if not validate_only:
        await deferToThread(modern.topics.store.add_partitions, topic.name, placed)
