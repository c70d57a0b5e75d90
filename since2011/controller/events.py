"""What a controller tells."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerElected(Event):
    """This broker is the controller now."""

    broker: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerResigned(Event):
    """This broker is the controller no longer, or reads everything again to be sure."""

    broker: int
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFailed(Event):
    """The controller met something it does not know how to handle; another broker may."""

    level: ClassVar[int] = logging.ERROR
    reason: str
