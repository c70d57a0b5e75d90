"""What modern logs tell the journal. Appending only counts."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent(Event):
    """About one partition."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernSegmentRolled(LogEvent):
    """A new active segment begins at ``base_offset``."""

    base_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernSegmentsDeleted(LogEvent):
    """Old segments went; the log begins at ``log_start_offset`` now."""

    n_segments: int
    n_bytes: int
    log_start_offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRebuilt(LogEvent):
    """A segment's indexes were missing, damaged or doubtful after a crash, and were made again from its log."""

    level: ClassVar[int] = logging.WARNING
    base_offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TornTailCut(LogEvent):
    """The end of the log was not a whole batch, as a crash leaves it, and was cut off."""

    level: ClassVar[int] = logging.WARNING
    offset: int
    n_bytes: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DamageSetAside(LogEvent):
    """Damage in the middle of the log: what lies before it is served, the rest is kept in files of its own."""

    level: ClassVar[int] = logging.ERROR
    offset: int
    n_bytes: int
    files: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotIgnored(LogEvent):
    """A snapshot of producers cannot be read; an older one and the log say the same."""

    level: ClassVar[int] = logging.WARNING
    file: str
    reason: str
