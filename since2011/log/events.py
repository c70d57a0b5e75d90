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


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochsRebuilt(LogEvent):
    """The file of leader epochs cannot be read; it was made again from the batches."""

    level: ClassVar[int] = logging.WARNING
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernLogCreated(LogEvent):
    """A partition got its directory."""

    directory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernLogDeleted(LogEvent):
    """A partition was deleted; its files go in a while."""

    directory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernLogOffline(LogEvent):
    """A partition could not be opened; all others are served."""

    level: ClassVar[int] = logging.ERROR
    directory: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernLogCleaned(LogEvent):
    """A round of the cleaner: of every key below ``offset`` only the latest record is left."""

    offset: int
    bytes_before: int
    bytes_after: int
    records_before: int
    records_after: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningFailed(LogEvent):
    """The cleaner could not clean a log, and leaves it alone until the broker starts anew."""

    level: ClassVar[int] = logging.ERROR
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectoryEvent(Event):
    """About one of ``log.dirs``."""

    directory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernLogsLoaded(LogDirectoryEvent):
    """Every partition of a directory was opened."""

    n_partitions: int
    was_clean: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectoryOffline(LogDirectoryEvent):
    """A disk failed: what lies on it is not served until the broker starts anew with a good one."""

    level: ClassVar[int] = logging.ERROR
    n_partitions: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointIgnored(LogDirectoryEvent):
    """A checkpoint cannot be read; it was set aside, and the logs themselves are read instead."""

    level: ClassVar[int] = logging.WARNING
    file: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayDirectory(LogDirectoryEvent):
    """A directory that is no partition's. It is left alone; a real Kafka broker would not start beside it."""

    level: ClassVar[int] = logging.WARNING
    entry: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepFailed(Event):
    """A job that is done from time to time could not be done; it is tried again at its next turn."""

    level: ClassVar[int] = logging.ERROR
    job: str
    reason: str
