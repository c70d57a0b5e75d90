"""What a topic's settings default to on a broker: the broker's own settings, and those changed while it runs.

Later beats earlier: Kafka's default, the broker's file, ``/config/brokers/<default>``, ``/config/brokers/<id>``, and
then the topic's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka2011.config import Config
from kafka2011.errors import ConfigError
from since2011.log.settings import LogConfig, TopicSetting, parse_setting, topic_settings
from since2011.topics.image import ClusterImage

TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5
"""Where a value comes from, by the numbers DescribeConfigs has for it."""


@dataclass(frozen=True, slots=True)
class Source:
    """One of the values a setting has, under the name it was given there."""

    name: str
    value: str
    source: int


class BrokerSettings:
    """The defaults of one broker. Thread: any."""

    def __init__(self, config: Config) -> None:
        """Raises ConfigError if a topic could not be given what the broker's file says."""
        self._static: dict[str, str] = {}
        for setting in topic_settings().values():
            if setting.of_broker is not None and (value := config[setting.of_broker]) is not None:
                _parsed(setting, str(value))
                self._static[setting.name] = str(value)
        self._last: tuple[Mapping[str, str], Mapping[str, str], LogConfig] | None = None

    def defaults(self, image: ClusterImage, broker_id: int) -> LogConfig:
        """What holds for a topic that sets nothing."""
        dynamic = image.config(f"brokers/{broker_id}"), image.config("brokers/<default>")
        last = self._last
        if last is None or last[:2] != dynamic:
            by_name = {name: self.sources(name, image, broker_id) for name in topic_settings()}
            values = {name: sources[0].value for name, sources in by_name.items() if sources}
            last = self._last = (*dynamic, LogConfig().with_overrides(values))
        return last[2]

    def sources(self, name: str, image: ClusterImage, broker_id: int) -> list[Source]:
        """The values a topic's setting has on the broker, the one that counts first; Kafka's default is left out."""
        of_broker = topic_settings()[name].of_broker
        if of_broker is None:
            return []
        found = []
        for entity, source in ((f"brokers/{broker_id}", DYNAMIC_BROKER), ("brokers/<default>", DYNAMIC_DEFAULT)):
            value = image.config(entity).get(of_broker)
            if value is not None:
                found.append(Source(of_broker, value, source))
        if name in self._static:
            found.append(Source(of_broker, self._static[name], STATIC))
        return found


def check_broker_settings(settings: Mapping[str, str]) -> None:
    """Refuse what a running broker cannot be told: ConfigError names it."""
    by_name = {setting.of_broker: setting for setting in topic_settings().values() if setting.of_broker is not None}
    for name, text in settings.items():
        setting = by_name.get(name)
        if setting is None:
            raise ConfigError(f"{name} cannot be changed while the broker runs: set it in its file, and restart it")
        _parsed(setting, text)


def _parsed(setting: TopicSetting, text: str) -> None:
    try:
        parse_setting(setting.name, text)
    except ConfigError as error:
        raise ConfigError(str(error).replace(setting.name, str(setting.of_broker), 1)) from error
