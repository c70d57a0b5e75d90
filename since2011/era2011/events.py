"""What happens to 2011 topics on the modern port, told once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class NotKept(Event):
    """A producer sends what a 2011 message has no room for. Told once per connection."""

    level: ClassVar[int] = logging.WARNING
    client: str
    peer: str
    principal: str
    topic: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducersForgotten(Event):
    """More producer ids wrote than ``max.producer.ids`` allows: who wrote longest ago is not remembered any more."""

    level: ClassVar[int] = logging.WARNING
    n_producers: int
    remembered: int


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
