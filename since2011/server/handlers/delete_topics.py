"""DeleteTopics: remove modern topics, by name or by id.

Behavior:
- The topic is gone for everybody when the answer comes; its files go after ``file.delete.delay.ms``.
- What groups have committed for it stays until it expires: whoever reads a new topic of the name from such an offset is
  told OFFSET_OUT_OF_RANGE, and begins where ``auto.offset.reset`` says. (A real broker removes it at once.)
- A topic of 2011 is INVALID_TOPIC: in the paper data goes by retention, and topics stay.
- ``delete.topic.enable=false``: TOPIC_DELETION_DISABLED for all. Topics the broker keeps for itself: INVALID_TOPIC.

Version notes:
- 4 flexible; 5 says why; 6 by name or id: an id nobody has is UNKNOWN_TOPIC_ID, both or neither INVALID_REQUEST.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from twisted.internet.threads import deferToThread

from kafka2011.errors import Kafka2011Error
from since2011.server.handlers.create_topics import refused_by_store
from since2011.topics.errors import InvalidRequest, InvalidTopic, UnknownTopic
from since2011.topics.internal import INTERNAL_TOPICS
from since2011.wire.codec import NO_UUID, Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def delete_topics(modern: ModernBroker, call: Call) -> Struct:
    """Delete each, or say why not."""
    asked = call.body.topics if call.version >= 6 else [Struct(name=n, topic_id=NO_UUID) for n in call.body.topic_names]
    named = Counter((topic.name, topic.topic_id) for topic in asked)
    return Struct(responses=[await _delete(modern, topic, named) for topic in asked])


async def _delete(modern: ModernBroker, asked: Struct, named: Counter[tuple[str | None, object]]) -> Struct:
    name = asked.name
    answer = Struct(name=name, topic_id=asked.topic_id, error=ErrorCode.NONE, error_message=None)
    try:
        if modern.broker.config["delete.topic.enable"] is False:
            raise Refused(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable=false: no topic can be deleted here")
        if (name is None) == (asked.topic_id == NO_UUID):
            raise InvalidRequest("name a topic, or give its id")
        if named[name, asked.topic_id] > 1:
            raise InvalidRequest("the topic is named more than once")
        if name is None:
            name = modern.view().ids.get(asked.topic_id)
            if name is None:
                raise Refused(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
            answer.name = name
        if name in INTERNAL_TOPICS:
            raise InvalidTopic(f"{name} is the broker's own; groups or transactions would lose what they have")
        if name in modern.topics:
            answer.topic_id = modern.topics.image.topics[name].topic_id
            await deferToThread(modern.topics.store.delete_topic, name)
        elif name in modern.view().topics:
            raise InvalidTopic(
                f"{name} is a topic of 2011, where data goes by retention and topics stay: stop the broker and remove "
                f"its directories {name}-0, … to be rid of it"
            )
        else:
            raise UnknownTopic(f"there is no topic {name[:250]}")
    except (Kafka2011Error, OSError) as error:
        answer.error, answer.error_message = refused_by_store(error)
    return answer
