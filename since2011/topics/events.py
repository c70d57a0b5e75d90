"""What happens to topics on the modern port, told once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.broker.events import Frequent
from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsRefused(Frequent):
    """Somebody asks for more topics than this broker may hold, or for too many at once."""

    level: ClassVar[int] = logging.WARNING
    peer: str
    n_topics: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TooFewBrokers(Event):
    """A topic of the brokers' own has fewer copies than it should, because fewer brokers are there.

    What groups have committed is gone with the disks that hold it. Start more brokers, then: kafka2011 reassign
    --internal.
    """

    level: ClassVar[int] = logging.WARNING
    topic: str
    wanted: int
    made: int
