"""Settings that are to be, out of those that are: what AlterConfigs and IncrementalAlterConfigs share. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from twisted.internet.threads import deferToThread

from kafka2011.errors import ConfigError
from since2011.log.settings import LIST, topic_settings
from since2011.topics.broker_settings import check_broker_settings
from since2011.topics.errors import InvalidRequest, InvalidSetting
from since2011.topics.store import ConfigChange
from since2011.wire.codec import Struct

if TYPE_CHECKING:
    from since2011.server.service import ModernBroker

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)


def entity_of(modern: ModernBroker, resource: Struct) -> str:
    """Where the settings of a resource are kept; raises TopicError if there is none such, or they cannot be changed."""
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        if not name:
            raise InvalidRequest("name a topic; defaults of topics are settings of the broker")
        if name not in modern.topics and name in modern.view().topics:
            raise InvalidSetting(f"{name} is a topic of 2011, which has no settings of its own: the broker's hold")
        modern.administration.known(name)
        return f"topics/{name}"
    if resource.resource_type == BROKER:
        if not name:
            return "brokers/<default>"
        check_broker_name(modern, name)
        return f"brokers/{name}"
    if resource.resource_type == BROKER_LOGGER:
        raise InvalidRequest("log levels are set when the broker starts (kafka2011 broker start --log-level), not here")
    raise InvalidRequest(f"resource type {resource.resource_type}: settings are of topics (2) and brokers (4)")


def check_broker_name(modern: ModernBroker, name: str) -> None:
    """Refuse what is not this broker: each is asked for itself."""
    own = modern.administration.broker_id
    if name != str(own):
        raise InvalidRequest(f"broker {name[:20]!r} is asked for, and this is broker {own}: ask that one")


def checked(modern: ModernBroker, entity: str, change: ConfigChange) -> ConfigChange:
    """The change, refused if what comes out of it cannot be."""

    def wanted(settings: dict[str, str]) -> dict[str, str]:
        changed = dict(change(settings))
        if entity.startswith("topics/"):
            modern.administration.effective(changed)
        else:
            try:
                check_broker_settings(changed)
            except ConfigError as error:
                raise InvalidSetting(str(error)) from error
        return changed

    return wanted


async def alter(modern: ModernBroker, entity: str, change: ConfigChange, *, validate_only: bool) -> None:
    """Make the change, or only see whether it could be made."""
    wanted = checked(modern, entity, change)
    wanted(dict(modern.topics.image.config(entity)))
    if not validate_only:
        await deferToThread(modern.topics.store.alter_config, entity, wanted)


def replacement(configs: Iterable[Struct]) -> ConfigChange:
    """These settings and no others."""
    new = {config.name: config.value for config in configs if config.value is not None}
    return lambda settings: new


def increments(configs: list[Struct]) -> ConfigChange:
    """One setting after the other: set, delete, append to a list, subtract from it."""
    if len({config.name for config in configs}) < len(configs):
        raise InvalidRequest("a setting is named more than once")
    for config in configs:
        if config.config_operation not in (SET, DELETE, APPEND, SUBTRACT):
            raise InvalidRequest(f"operation {config.config_operation}: 0 sets, 1 deletes, 2 appends, 3 subtracts")
        if config.value is None and config.config_operation != DELETE:
            raise InvalidRequest(f"no value is given for {config.name}")

    def change(settings: dict[str, str]) -> dict[str, str]:
        for config in configs:
            _increment(settings, config)
        return settings

    return change


def _increment(settings: dict[str, str], config: Struct) -> None:
    name, value = config.name, config.value
    if config.config_operation == SET:
        settings[name] = value
    elif config.config_operation == DELETE:
        settings.pop(name, None)
    else:
        default = _default_list(name)
        before = [word for word in settings.get(name, default).split(",") if word]
        words = [word.strip() for word in value.split(",") if word.strip()]
        if config.config_operation == APPEND:
            settings[name] = ",".join(before + [word for word in words if word not in before])
        else:
            settings[name] = ",".join(word for word in before if word not in words)


def _default_list(name: str) -> str:
    for declared in topic_settings().values():
        if name in (declared.name, declared.of_broker):
            if declared.type != LIST:
                raise InvalidSetting(f"{name} is no list: set it, or delete it")
            return declared.default_text
    raise InvalidSetting(f"{name!r} is no setting of a topic or of a broker's topics")
