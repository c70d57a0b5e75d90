"""What happens on the modern port, told once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernPortOpened(Event):
    """Today's protocol is served beside the paper's."""

    host: str
    port: int
    tls: bool
    sasl: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NotKept(Event):
    """A producer sends what a 2011 message has no room for. Told once per connection."""

    level: ClassVar[int] = logging.WARNING
    client: str
    peer: str
    topic: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRefused(Event):
    """A producer asked for transactions, which a 2011 log cannot hold. Told once per connection."""

    level: ClassVar[int] = logging.WARNING
    client: str
    peer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducersInDoubt(Event):
    """The machine went down with batches under way: retries of producers from before are refused."""

    level: ClassVar[int] = logging.WARNING
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsCrowded(Event):
    """A wrapper holds more messages than bytes, so some of them share one offset."""

    level: ClassVar[int] = logging.WARNING
    topic: str
    partition: int
    offset: int
    n_messages: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChanged(Event):
    """Other brokers came or went; groups may have a new coordinator."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslRefused(Event):
    """Somebody could not say who they are."""

    level: ClassVar[int] = logging.WARNING
    peer: str
    mechanism: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsNotFlushed(Event):
    """The disk refused a flush of the offsets log: commits to that partition fail until a restart."""

    level: ClassVar[int] = logging.ERROR
    partition: int
    error: str
