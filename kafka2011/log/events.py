"""What happens to a log, as events. Paper: §3.1, §3.3."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent(Event):
    """Something about one partition's log."""

    section: ClassVar[str] = "3.1"

    topic: str
    partition: int


class TopicCreated(LogEvent):
    """The first message set for a topic made its directory; ``partition`` is the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRolled(LogEvent):
    """The active segment was full or old; a new one begins at ``start``."""

    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFlushed(LogEvent):
    """Bytes up to ``offset`` are on disk and visible."""

    level: ClassVar[int] = logging.DEBUG

    offset: int
    n_messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentsDeleted(LogEvent):
    """Retention dropped the oldest segments, read or not; the log now begins at ``first_offset``."""

    n_segments: int
    size: int
    first_offset: int
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionHeld(Event):
    """The wall clock jumped ahead of the steady one: nothing is deleted by age until it has been believed."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "3.1"

    jump_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecovered(LogEvent):
    """After an unclean stop the log was scanned from ``recovery_point`` to its end."""

    recovery_point: int
    end_offset: int
    size_scanned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TailTruncated(LogEvent):
    """An unfinished write at the end was cut off: bytes ``start`` … ``end`` were never flushed."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "3.3"

    start: int
    end: int
    size: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentQuarantined(LogEvent):
    """Damage in the middle: offsets ``start`` … ``end`` are set aside in ``path``, nothing is dropped silently."""

    level: ClassVar[int] = logging.ERROR
    section: ClassVar[str] = "3.3"

    start: int
    end: int
    path: str
    policy: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOffline(LogEvent):
    """The partition is not served; the others are."""

    level: ClassVar[int] = logging.ERROR

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSetAside(LogEvent):
    """A file that does not belong to the log was renamed (or, if an old deletion had been undone, removed)."""

    level: ClassVar[int] = logging.WARNING

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMissing(LogEvent):
    """A file (or directory) of flushed bytes is gone, not by retention; no offset of it will be given out again."""

    level: ClassVar[int] = logging.ERROR
    section: ClassVar[str] = "3.3"

    path: str
    start: int
    end: int


class MissingAccepted(LogEvent):
    """Somebody said that the missing files of this partition are known to be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDamaged(Event):
    """The recovery points cannot be read: every log is scanned from its beginning, missing files go unnoticed."""

    level: ClassVar[int] = logging.ERROR
    section: ClassVar[str] = "3.3"

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRoom(Event):
    """The disk has no room even for the broker's own notes: what is stored is served, nothing is taken."""

    level: ClassVar[int] = logging.ERROR
    section: ClassVar[str] = "3.1"

    reason: str


class RoomAgain(Event):
    """There is room on the disk again: messages are taken."""

    section: ClassVar[str] = "3.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFull(LogEvent):
    """No room for an append; nothing of it was kept. Reading goes on."""

    level: ClassVar[int] = logging.ERROR

    reason: str


class DiskRoomAgain(LogEvent):
    """The first append after DiskFull that went through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFailed(LogEvent):
    """A write or sync failed for good: no appends and no new visible bytes until the broker is restarted."""

    level: ClassVar[int] = logging.ERROR

    step: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HousekeepingFailed(Event):
    """A deletion or a checkpoint could not be written; it is tried again at the next pass."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "3.1"

    step: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayEntry(Event):
    """Something in the data directory that is not a partition; left alone."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "3.1"

    path: str
    reason: str
