"""What a producer tells its journal. Sending itself only counts."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUnreachable(Event):
    """A broker did not take what was sent; the producer tries again, or elsewhere."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"

    broker: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesDropped(Event):
    """Messages the producer gave up, or cannot know the fate of."""

    level: ClassVar[int] = logging.ERROR
    section: ClassVar[str] = "§5"

    topic: str
    n_messages: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackFailed(Event):
    """The application's own ``on_drop`` raised; the producer goes on."""

    level: ClassVar[int] = logging.ERROR

    error: str
