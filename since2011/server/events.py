"""What happens on the modern port, told once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.broker.events import Frequent
from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernPortOpened(Event):
    """Today's protocol is served beside the paper's."""

    host: str
    port: int
    tls: bool
    sasl: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRefused(Event):
    """A producer asked for transactions, which a 2011 log cannot hold. Told once per connection."""

    level: ClassVar[int] = logging.WARNING
    client: str
    peer: str
    principal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChanged(Event):
    """Other brokers came or went; groups may have a new coordinator."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslRefused(Frequent):
    """Somebody could not show that they are who they say (``user``); the connection ends."""

    level: ClassVar[int] = logging.WARNING
    peer: str
    principal: str
    mechanism: str
    user: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernTopicUnclean(Event):
    """Something about a modern topic could not be done or read as it should."""

    level: ClassVar[int] = logging.WARNING
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsNotGiven(Event):
    """A producer asked for an id and the cluster's metadata could not give one; it asks again."""

    level: ClassVar[int] = logging.WARNING
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayLog(Event):
    """A log of a topic that was deleted while this broker was away; it is deleted, too."""

    level: ClassVar[int] = logging.WARNING
    topic: str
    partition: int
