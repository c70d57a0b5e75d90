"""What other packages add to a broker: the ZooKeeper registration, the port for today's clients.

A plug-in is a class under the entry-point group ``kafka2011.broker_plugins``. The broker knows its interface and
nothing else about it: it takes part in the life of the broker, not in the way of a request.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from prometheus_client.registry import Collector
from twisted.internet.defer import Deferred

from kafka2011.broker.events import PluginSkipped
from kafka2011.config import BROKER_SETTINGS, Config, Setting, load_config
from kafka2011.errors import ConfigError
from kafka2011.events import Journal

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

GROUP = "kafka2011.broker_plugins"

SWITCHES: Mapping[str, tuple[str, str]] = {"zookeeper": ("zk.connect", "zk"), "modern": ("modern.port", "all")}
"""The setting that asks for a plug-in, and the extra that installs it: to be clear when it is not installed."""


class Plugin(Protocol):
    """The interface of a plug-in."""

    SETTINGS: ClassVar[tuple[Setting, ...]]

    def __init__(self, broker: Broker) -> None: ...

    @classmethod
    def wanted(cls, config: Config) -> bool:
        """Whether the settings ask for it."""

    def start(self) -> Deferred[Any] | None:
        """Begin; called once the broker listens."""

    def topic_created(self, topic: str, n_partitions: int) -> None:
        """A topic's first message set arrived."""

    def stop(self) -> Deferred[Any] | None:
        """End; called before the broker stops listening."""

    def state(self) -> dict[str, Any]:
        """What ``/state`` shows of it."""

    def trouble(self) -> str | None:
        """What keeps it from its work just now, in a line for ``/healthz``; None if nothing does."""

    def collectors(self) -> Sequence[Collector]:
        """What ``/metrics`` shows of it."""


class Gate(Protocol):
    """Decides when a broker serves: until then it holds its logs, and nobody can reach them."""

    def begin(self, serve: Callable[[], Deferred[None]]) -> Deferred[None]:
        """Begin; fires when the broker is what it can be without serving. ``serve`` is called when it shall serve."""

    def end(self) -> Deferred[None]:
        """The broker stops: hand over what others go on with."""


def installed() -> tuple[dict[str, type[Plugin]], dict[str, ModuleNotFoundError]]:
    """The plug-ins by name, and those whose packages are missing."""
    found: dict[str, type[Plugin]] = {}
    missing: dict[str, ModuleNotFoundError] = {}
    for entry in entry_points(group=GROUP):
        try:
            found[entry.name] = entry.load()
        except ModuleNotFoundError as error:
            missing[entry.name] = error
    return found, missing


def broker_config(
    file: Path | None = None, flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Config:
    """Load the configuration of a broker with the settings of every installed plug-in."""
    return load_config(file, os.environ if environ is None else environ, flags, all_settings())


def all_settings() -> tuple[Setting, ...]:
    """The broker's settings and those of every installed plug-in; where both have one, the plug-in's."""
    extra = [setting for plugin in installed()[0].values() for setting in plugin.SETTINGS]
    return tuple(({s.name: s for s in BROKER_SETTINGS} | {s.name: s for s in extra}).values())


def wanted(config: Config, journal: Journal) -> dict[str, type[Plugin]]:
    """The plug-ins the configuration asks for; raise ConfigError if one of them is not installed."""
    found, missing = installed()
    for name, error in missing.items():
        switch, extra = SWITCHES.get(name, ("", "all"))
        switched_off = switch == "zk.connect" and not config["enable.zookeeper"]
        if switch in config and config[switch] is not None and not switched_off:
            raise ConfigError(
                f"{switch} ({config.origin(switch)}) needs the Python package {error.name!r}; "
                f"install it with: pip install 'kafka2011[{extra}]'"
            )
        journal.emit(PluginSkipped(plugin=name, reason=str(error)))
    # In the order of the switches: the modern port looks for the other brokers through the registration.
    names = [*SWITCHES, *sorted(found.keys() - SWITCHES.keys())]
    return {name: found[name] for name in names if name in found and found[name].wanted(config)}
