"""What happens to a reader of partitions, told to its journal."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionReset(Event):
    """The position lay outside the log, and auto.offset.reset decided: what lies between is skipped, or read again."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    topic: str
    partition: int
    asked: int
    moved_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionCutOff(Event):
    """The log was cut off below the position, by a leader that never had what was read: reading goes on at its end."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    topic: str
    partition: int
    asked: int
    moved_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSilent(Event):
    """A broker does not answer; what it leads is asked for again, from whoever leads it then."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    reason: str
