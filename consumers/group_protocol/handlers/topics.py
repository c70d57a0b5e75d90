"""CreateTopics: a topic is made on this broker, with as many partitions as are asked for.

Spec: modern-group-protocol §1.4. Paper: §3 (topics).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from consumers.group_protocol.codec import Struct
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.handlers.refusals import Refused, refusal
from kafka2011.errors import Kafka2011Error

if TYPE_CHECKING:
    from consumers.group_protocol.handlers.call import Call
    from consumers.group_protocol.service import Modern

_DEFAULT = -1
MAX_PARTITIONS = 1_000
"""Of one topic, by request; each is a directory and an open file."""


async def create_topics(modern: Modern, call: Call) -> Struct:
    """Create each, or say why not; ``validate_only`` only says."""
    named = Counter(topic.name for topic in call.body.topics)
    answers = []
    for topic in call.body.topics:
        answer = Struct(name=topic.name, error=ErrorCode.NONE, message=None)
        try:
            if named[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f"{topic.name} is named more than once")
            _check(modern, topic)
            if not call.body.validate_only:
                given = topic.partitions != _DEFAULT
                count = topic.partitions if given else modern.broker.store.partition_count(topic.name)
                modern.create_topic_with(topic.name, count)
        except Kafka2011Error as error:
            answer.error, answer.message = refusal(error)
        answers.append(answer)
    return Struct(topics=answers)


def _check(modern: Modern, topic: Struct) -> None:
    modern.check_name(topic.name)
    if topic.name in modern.view().topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"{topic.name} is there already")
    if topic.assignments:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions are not placed by hand in 2011")
    if topic.replication not in (_DEFAULT, 1):
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, "2011 has no replication: ask for 1")
    if topic.partitions != _DEFAULT and not 1 <= topic.partitions <= MAX_PARTITIONS:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"{topic.partitions} partitions; 1 to {MAX_PARTITIONS} can be")
    if topic.configs:
        names = ", ".join(config.name for config in topic.configs)
        raise Refused(ErrorCode.INVALID_CONFIG, f"topics have no settings of their own here: {names[:200]}")
