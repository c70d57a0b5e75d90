"""Settings as DescribeConfigs and CreateTopics tell them: the value that holds, where it comes from, its synonyms."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kafka2011.config import Config, Setting, written
from since2011.log.settings import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING, LogConfig, topic_settings
from since2011.topics.administration import Administration
from since2011.topics.broker_settings import DEFAULT, STATIC, TOPIC, Source
from since2011.wire.codec import Struct

PASSWORD = 9
_TYPES = {bool: BOOLEAN, int: LONG, float: DOUBLE, str: STRING, Path: STRING}


def topic_entries(
    admin: Administration, settings: Mapping[str, str], *, synonyms: bool, documentation: bool
) -> list[Struct]:
    """Every setting of a topic that sets these itself."""
    config = admin.effective(settings).as_text()
    entries = []
    for declared in sorted(topic_settings().values(), key=lambda setting: setting.name):
        sources = admin.settings.sources(declared.name, admin.image, admin.broker_id)
        if declared.name in settings:
            sources.insert(0, Source(declared.name, settings[declared.name], TOPIC))
        if declared.of_broker is not None:
            sources.append(Source(declared.of_broker, declared.default_text, DEFAULT))
        entries.append(
            Struct(
                name=declared.name,
                value=config[declared.name],
                read_only=False,
                config_source=sources[0].source if sources else DEFAULT,
                is_sensitive=False,
                synonyms=_told(sources) if synonyms else [],
                config_type=declared.type,
                documentation=declared.help if documentation else None,
            )
        )
    return entries


def creation_entries(admin: Administration, config: LogConfig, settings: Mapping[str, str]) -> list[Struct]:
    """Every setting of a topic just made, without synonyms."""
    return topic_entries(admin, settings, synonyms=False, documentation=False)


def broker_entries(admin: Administration, config: Config, *, synonyms: bool, documentation: bool) -> list[Struct]:
    """Every setting of this broker: those that give topics their defaults can be changed while it runs."""
    by_broker = {declared.of_broker: declared for declared in topic_settings().values()}
    entries = []
    for setting in sorted(config.settings.values(), key=lambda setting: setting.name):
        declared = by_broker.get(setting.name)
        sources = [] if declared is None else admin.settings.sources(declared.name, admin.image, admin.broker_id)
        if declared is None and config.origin(setting.name) != "default":
            sources = [Source(setting.name, written(config[setting.name]), STATIC)]
        default = declared.default_text if declared is not None else written(config[setting.name])
        if declared is not None or setting.default is not None:
            usual = default if declared is not None or setting.default is None else written(setting.default)
            sources.append(Source(setting.name, usual, DEFAULT))
        hidden = _is_secret(setting)
        entries.append(
            Struct(
                name=setting.name,
                value=None if hidden or not sources else sources[0].value,
                read_only=declared is None,
                config_source=sources[0].source if sources else DEFAULT,
                is_sensitive=hidden,
                synonyms=_told(sources, hidden) if synonyms else [],
                config_type=PASSWORD if hidden else _type_of(setting) if declared is None else declared.type,
                documentation=setting.help if documentation else None,
            )
        )
    return entries


def dynamic_entries(settings: Mapping[str, str], source: int) -> list[Struct]:
    """The settings that were changed for all brokers while they run."""
    by_broker = {declared.of_broker: declared for declared in topic_settings().values()}
    return [
        Struct(
            name=name,
            value=value,
            read_only=False,
            config_source=source,
            is_sensitive=False,
            synonyms=[Struct(name=name, value=value, source=source)],
            config_type=by_broker[name].type if name in by_broker else 0,
            documentation=by_broker[name].help if name in by_broker else None,
        )
        for name, value in sorted(settings.items())
    ]


def _told(sources: list[Source], hidden: bool = False) -> list[Struct]:
    return [Struct(name=s.name, value=None if hidden else s.value, source=s.source) for s in sources]


def _type_of(setting: Setting) -> int:
    if setting.type is int and setting.maximum is not None and setting.maximum < 2**31:
        return INT
    return _TYPES.get(setting.type, LIST)


def _is_secret(setting: Setting) -> bool:
    """Files with passwords and keys: nobody on the network need know where they are."""
    return any(word in setting.name for word in ("credential", "sasl.users", "tls.key"))
