"""What happens to a broker, as events."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStarted(Event):
    """The broker listens."""

    section: ClassVar[str] = "3"
    broker_id: int
    host: str
    port: int
    log_dir: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStopped(Event):
    """The broker stopped; ``clean`` if every log was flushed and the marker written."""

    broker_id: int
    clean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenToTheNetwork(Event):
    """Anybody who reaches this address is let in: there is neither a login nor a client certificate at this door."""

    level: ClassVar[int] = logging.WARNING
    door: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequent(Event):
    """What a stranger can make happen as often as they like: ``suppressed`` more of the kind were not told."""

    suppressed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionClosed(Frequent):
    """The broker closed a connection on its own account."""

    level: ClassVar[int] = logging.WARNING
    peer: str
    principal: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceDropped(Frequent):
    """A message set was not appended and the connection stayed open."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "3.1"
    topic: str
    partition: int
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerFailed(Frequent):
    """A request met an error nobody foresaw; its connection was closed, the broker lives."""

    level: ClassVar[int] = logging.ERROR
    peer: str
    principal: str
    error: str
    trace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionFailed(Event):
    """A retention pass ended early; the next one tries again."""

    level: ClassVar[int] = logging.ERROR
    section: ClassVar[str] = "3.1"
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopFailed(Event):
    """A part of the broker did not stop as it should; the rest was stopped all the same."""

    level: ClassVar[int] = logging.ERROR
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactorLate(Event):
    """The network thread did not turn for ``seconds``; ``stack`` is where it stood."""

    level: ClassVar[int] = logging.WARNING
    seconds: float
    stack: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSkipped(Event):
    """A plug-in nobody asked for is not installed."""

    level: ClassVar[int] = logging.DEBUG
    plugin: str
    reason: str
