"""CreateTopics: make topics, modern ones unless ``log.format=2011`` is asked for.

Behavior:
- Each topic is for itself: one that is refused keeps none of the others from being made. Named twice in one request:
  INVALID_REQUEST for it.
- Limits first (how many topics a client may make at once, room), then name, places and settings, then the store.
- -1 partitions or replicas are the broker's defaults. Placed by hand (``assignments``), both must be -1.
- ``validate_only`` does everything but make them.
- A topic of 2011 lies on this broker, has no replicas and no settings of its own.

Version notes:
- 5 answers partitions, replicas and every setting that holds; 7 the topic's id. 5 flexible.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from twisted.internet.threads import deferToThread

from kafka2011.errors import Kafka2011Error
from since2011.server.handlers.config_entries import creation_entries
from since2011.topics.administration import DEFAULT
from since2011.topics.errors import InvalidRequest, InvalidSetting, InvalidTopic, TopicExists
from since2011.topics.internal import INTERNAL_TOPICS
from since2011.topics.placement import Assignments
from since2011.wire.codec import NO_UUID, Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused, refusal
from zk_registry.operations import RegistryError

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

LOG_FORMAT = "log.format"
MAX_PARTITIONS_2011 = 1_000
"""Of one topic of 2011, by request; each is a directory once it is written to."""
THROTTLE_MS = 1_000
"""How long clients that have created too many topics wait, those that listen to it."""


async def create_topics(modern: ModernBroker, call: Call) -> Struct:
    """Create each, or say why not."""
    named = Counter(topic.name for topic in call.body.topics)
    answers = []
    throttle_ms = 0
    for topic in call.body.topics:
        try:
            if named[topic.name] > 1:
                raise InvalidRequest(f"{topic.name[:250]} is named more than once")
            answers.append(await _create(modern, call, topic))
        except (Kafka2011Error, OSError) as error:
            code, message = refused_by_store(error)
            throttle_ms = THROTTLE_MS if code is ErrorCode.THROTTLING_QUOTA_EXCEEDED else throttle_ms
            answers.append(Struct(name=topic.name, topic_id=NO_UUID, error=code, message=message, configs=None))
    return Struct(throttle_ms=throttle_ms, topics=answers)


def refused_by_store(error: Exception) -> tuple[ErrorCode, str]:
    """What a client is told; where the store does not answer, that it may ask again."""
    if isinstance(error, RegistryError | OSError):
        return ErrorCode.REQUEST_TIMED_OUT, f"the metadata cannot be written now ({error}); try again"
    assert isinstance(error, Kafka2011Error)
    return refusal(error)


async def _create(modern: ModernBroker, call: Call, topic: Struct) -> Struct:
    if topic.name in modern.view().topics:
        raise TopicExists(f"{topic.name} is there already")
    if topic.name in INTERNAL_TOPICS:
        raise InvalidTopic(f"{topic.name} is made by the broker itself, when the first group or transaction needs it")
    settings = _settings(topic)
    format = settings.pop(LOG_FORMAT, modern.log_format)
    if format == "2011":
        return await _create_2011(modern, call, topic, settings)
    if format != "modern":
        raise InvalidSetting(f"log.format={format!r}: it must be modern or 2011")
    return await _create_modern(modern, call, topic, settings)


def _settings(topic: Struct) -> dict[str, str]:
    without = [config.name for config in topic.configs if config.value is None]
    if without:
        raise InvalidSetting(f"no value is given for {', '.join(without)[:200]}")
    if len({config.name for config in topic.configs}) < len(topic.configs):
        raise InvalidRequest("a setting is given more than once")
    return {config.name: config.value for config in topic.configs}


async def _create_modern(modern: ModernBroker, call: Call, topic: Struct, settings: dict[str, str]) -> Struct:
    by_hand: Assignments = {one.index: tuple(one.brokers) for one in topic.assignments}
    if by_hand and (topic.partitions != DEFAULT or topic.replication != DEFAULT):
        raise InvalidRequest("give numbers of partitions and replicas, or place them by hand, not both")
    if len(by_hand) < len(topic.assignments):
        raise InvalidRequest("a partition is placed more than once")
    admin = modern.administration
    placed = admin.place_new(topic.name, topic.partitions, topic.replication, by_hand)
    config = admin.effective(settings)
    topic_id = NO_UUID
    if not call.body.validate_only:
        if not modern.broker.creations.take(call.caller.address):
            raise Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, modern.broker.creations.sentence)
        made = await deferToThread(modern.topics.store.create_topic, topic.name, placed, settings)
        topic_id = made.topic_id
    return Struct(
        name=topic.name,
        topic_id=topic_id,
        error=ErrorCode.NONE,
        message=None,
        num_partitions=len(placed),
        replication_factor=len(placed[0]),
        configs=creation_entries(admin, config, settings),
    )


async def _create_2011(modern: ModernBroker, call: Call, topic: Struct, settings: dict[str, str]) -> Struct:
    if settings:
        names = ", ".join(settings)
        raise InvalidSetting(f"a topic of 2011 has no settings of its own, the broker's hold: {names[:200]}")
    if topic.assignments or topic.replication not in (DEFAULT, 1):
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, "a topic of 2011 has no replicas: ask for 1")
    if topic.partitions != DEFAULT and not 1 <= topic.partitions <= MAX_PARTITIONS_2011:
        sentence = f"{topic.partitions} partitions; a topic of 2011 has 1 to {MAX_PARTITIONS_2011}"
        raise Refused(ErrorCode.INVALID_PARTITIONS, sentence)
    modern.check_name(topic.name)
    count = None if topic.partitions == DEFAULT else topic.partitions
    if not call.body.validate_only:
        errors = await modern.creation.create({topic.name: count}, call.caller.address)
        if errors:
            raise errors[topic.name]
    n_partitions = modern.broker.store.partition_count(topic.name) if count is None else count
    return Struct(
        name=topic.name,
        topic_id=NO_UUID,
        error=ErrorCode.NONE,
        message=None,
        num_partitions=n_partitions,
        replication_factor=1,
        configs=[Struct(name=LOG_FORMAT, value="2011", read_only=True, config_source=1, is_sensitive=False)],
    )
