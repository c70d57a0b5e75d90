"""DescribeConfigs: the settings of topics and brokers, each with where its value comes from.

Behavior:
- Topics (2): every setting a topic can have. Brokers (4): this broker's, or with an empty name what was changed for all
  brokers while they run. Broker loggers (8): none, log levels are set when the broker starts.
- A topic of 2011 shows ``log.format`` and what the broker's settings of 2011 come to in today's words, all read-only.
- Keys null or empty asks for all; a key that is none is left out.

Version notes:
- 3 types and documentation; 4 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from since2011.server.handlers.config_changes import BROKER, BROKER_LOGGER, TOPIC, check_broker_name
from since2011.server.handlers.config_entries import broker_entries, dynamic_entries, topic_entries
from since2011.server.handlers.create_topics import LOG_FORMAT, refused_by_store
from since2011.topics.broker_settings import DYNAMIC_DEFAULT, STATIC
from since2011.topics.broker_settings import TOPIC as OF_TOPIC
from since2011.topics.errors import InvalidRequest
from since2011.topics.names import check_name
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def describe_configs(modern: ModernBroker, call: Call) -> Struct:
    """Describe each."""
    results = []
    for resource in call.body.resources:
        answer = Struct(
            error=ErrorCode.NONE,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[],
        )
        try:
            wanted = set(resource.configuration_keys or ())
            answer.configs = [e for e in _entries(modern, call, resource) if not wanted or e.name in wanted]
        except Kafka2011Error as error:
            answer.error, answer.error_message = refused_by_store(error)
        results.append(answer)
    return Struct(results=results)


def _entries(modern: ModernBroker, call: Call, resource: Struct) -> list[Struct]:
    name, admin = resource.resource_name, modern.administration
    synonyms, documentation = call.body.include_synonyms, call.body.include_documentation
    if resource.resource_type == TOPIC:
        check_name(name)
        if name not in modern.topics and name in modern.view().topics:
            return _topic_2011(modern)
        admin.known(name)
        settings = modern.topics.image.config(f"topics/{name}")
        return topic_entries(admin, settings, synonyms=synonyms, documentation=documentation)
    if resource.resource_type == BROKER:
        if not name:
            return dynamic_entries(modern.topics.image.config("brokers/<default>"), DYNAMIC_DEFAULT)
        check_broker_name(modern, name)
        return broker_entries(admin, modern.broker.config, synonyms=synonyms, documentation=documentation)
    if resource.resource_type == BROKER_LOGGER:
        check_broker_name(modern, name)
        return []
    raise InvalidRequest(f"resource type {resource.resource_type}: settings are of topics (2) and brokers (4)")


def _topic_2011(modern: ModernBroker) -> list[Struct]:
    config = modern.broker.config
    told = {
        LOG_FORMAT: "2011",
        "cleanup.policy": "delete",
        "retention.ms": str(config.integer("log.retention.hours") * 3_600_000),
        "segment.bytes": str(config.integer("log.file.size")),
        "segment.ms": str(config.integer("log.roll.hours") * 3_600_000),
        "max.message.bytes": str(config.integer("max.message.size")),
        "flush.messages": str(config.integer("log.flush.interval")),
    }
    return [
        Struct(
            name=name,
            value=value,
            read_only=True,
            config_source=OF_TOPIC if name == LOG_FORMAT else STATIC,
            is_sensitive=False,
            synonyms=[],
            config_type=2,
            documentation=None,
        )
        for name, value in told.items()
    ]
