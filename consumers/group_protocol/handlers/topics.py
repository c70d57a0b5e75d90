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
"""Of one topic, by request; each is a directory once it is written to."""
THROTTLE_MS = 1_000
"""How long clients that have created too many topics wait, those that listen to it."""


async def create_topics(modern: Modern, call: Call) -> Struct:
    """Create each, or say why not; ``validate_only`` only says."""
    named = Counter(topic.name for topic in call.body.topics)
    errors: dict[str, Kafka2011Error] = {}
    wanted: dict[str, int | None] = {}
    for topic in call.body.topics:
        try:
            if named[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f"{topic.name[:250]} is named more than once")
            _check(modern, topic)
            wanted[topic.name] = None if topic.partitions == _DEFAULT else topic.partitions
        except Kafka2011Error as error:
            errors[topic.name] = error
    if wanted and not call.body.validate_only:
        errors |= await modern.creation.create(wanted, call.caller.address)
    answers = []
    throttle_ms = 0
    for topic in call.body.topics:
        code, message = refusal(errors[topic.name]) if topic.name in errors else (ErrorCode.NONE, None)
        throttle_ms = THROTTLE_MS if code is ErrorCode.THROTTLING_QUOTA_EXCEEDED else throttle_ms
        answers.append(Struct(name=topic.name, error=code, message=message))
    return Struct(throttle_ms=throttle_ms, topics=answers)


def _check(modern: Modern, topic: Struct) -> None:
    modern.check_name(topic.name)
    if topic.name in modern.view().topics or modern.creation.is_under_way(topic.name):
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
