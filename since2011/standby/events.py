"""What the members of a logical broker have to tell. Paper: §3.3, future work."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipWon(Event):
    """A member leads its broker from now on."""

    section: ClassVar[str] = "§3.3"
    broker_id: int
    member: str
    epoch: int
    members: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipLost(Event):
    """A member has stopped leading: its lease ran out, its session ended, or another was elected."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.3"
    broker_id: int
    member: str
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Following(Event):
    """A member copies from its leader."""

    section: ClassVar[str] = "§3.3"
    broker_id: int
    member: str
    epoch: int
    leader: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InSyncChanged(Event):
    """The leader changes the set of members that have everything."""

    section: ClassVar[str] = "§3.3"
    broker_id: int
    members: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCut(Event):
    """A member had bytes that its leader has not: they were never visible, and are cut off."""

    section: ClassVar[str] = "§3.3"
    topic: str
    partition: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberGone(Event):
    """The connection of a follower was closed."""

    section: ClassVar[str] = "§3.3"
    broker_id: int
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyTrouble(Event):
    """A member cannot do its work just now; it tries again."""

    level: ClassVar[int] = logging.WARNING
    broker_id: int
    member: str
    reason: str
