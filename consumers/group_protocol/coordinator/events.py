"""What happens to groups, told once.

See docs/group-protocol.md (states), §5 (timers), §12 (epochs).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStateChanged(Event):
    """A group went from one state to another."""

    group: str
    before: str
    after: str
    generation: int
    n_members: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAdded(Event):
    """A member came in."""

    group: str
    member: str
    instance: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRemoved(Event):
    """A member left, or was put out because a timer ran out."""

    group: str
    member: str
    instance: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticMemberReplaced(Event):
    """A restarted static member took the place of its former self (KIP-345)."""

    group: str
    instance: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochBumped(Event):
    """A KIP-848 group began a new epoch and has a new target assignment."""

    group: str
    epoch: int
    n_members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsExpired(Event):
    """Offsets nobody used for the retention time were dropped."""

    group: str
    n_offsets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRemoved(Event):
    """A group without members and offsets is forgotten."""

    group: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetAppendRefused(Event):
    """The offsets log could not take records; the request was answered with a retriable error."""

    level: ClassVar[int] = logging.ERROR
    group: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordUnreadable(Event):
    """A record of the offsets log could not be understood at load and was left aside."""

    level: ClassVar[int] = logging.ERROR
    key: bytes
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsDamaged(Event):
    """A partition of the offsets log cannot be read: its groups are not served until someone looks."""

    level: ClassVar[int] = logging.ERROR
    partition: int
    error: str
