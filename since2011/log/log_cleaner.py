"""Which compacted log is cleaned next, and cleaning it: the dirtiest first, one at a time, slowly.

A log whose cleaning fails is left alone until the broker starts anew, and named.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from kafka2011.clock import Clock
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Journal
from since2011.log.cleaner import CleanerStats
from since2011.log.cleaner_choice import CleanRange, clean_range, worth_cleaning
from since2011.log.events import CleaningFailed, ModernLogCleaned
from since2011.log.log import ModernLog
from since2011.log.log_directory import LogDirectory
from since2011.log.offset_map import DEFAULT_MAP_BYTES
from since2011.log.pace import FOREVER, Rests
from since2011.log.swap import CleaningStopped, clean_log
from since2011.wire.compression import compress, decompress


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """``log.cleaner.*``."""

    dedupe_buffer_size: int = DEFAULT_MAP_BYTES
    io_max_bytes_per_second: float = FOREVER
    share: float = 0.25
    """How much of the time it works; the rest it lets others."""
    max_inflated_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True)
class CleanerRound:
    """What one round did."""

    log: ModernLog
    cleaned_to: int
    stats: CleanerStats
    seconds: float


@dataclass(slots=True)
class LogCleaner:
    """Thread: any; rounds one at a time."""

    settings: CleanerSettings
    clock: Clock
    journal: Journal
    uncleanable: dict[ModernLog, str] = field(default_factory=dict)
    """Logs that failed to be cleaned, and why."""
    n_rounds: int = 0
    bytes_read: int = 0
    bytes_saved: int = 0
    _busy: threading.Lock = field(default_factory=threading.Lock)

    def clean_one(self, logs: Mapping[ModernLog, LogDirectory]) -> CleanerRound | None:
        """Clean the dirtiest of these, if one is dirty enough."""
        with self._busy:
            chosen = self._choose(logs)
            return None if chosen is None else self._clean(chosen[0], logs[chosen[0]], chosen[1])

    def _choose(self, logs: Mapping[ModernLog, LogDirectory]) -> tuple[ModernLog, CleanRange] | None:
        best: tuple[ModernLog, CleanRange] | None = None
        for log, directory in logs.items():
            if log in self.uncleanable or log.failed is not None:
                continue
            with log.lock:
                found = clean_range(log, directory.cleaned_to.get((log.topic, log.partition)), self.clock.wall_ms())
            is_better = best is None or found.dirty_ratio > best[1].dirty_ratio
            if worth_cleaning(log, found) and is_better:
                best = log, found
        return best

    def _clean(self, log: ModernLog, directory: LogDirectory, found: CleanRange) -> CleanerRound | None:
        began = self.clock.monotonic()
        settings = self.settings
        try:
            cleaned_to, stats = clean_log(
                log,
                found.first_dirty,
                found.first_uncleanable,
                partial(decompress, limit=settings.max_inflated_bytes),
                compress,
                most_bytes=settings.dedupe_buffer_size,
                pace=Rests(self.clock, settings.share, settings.io_max_bytes_per_second),
            )
        except CleaningStopped:
            return None
        except (Kafka2011Error, OSError) as error:
            self.uncleanable[log] = str(error)
            self.journal.emit(CleaningFailed(topic=log.topic, partition=log.partition, reason=str(error)))
            return None
        directory.write_cleaned((log.topic, log.partition), cleaned_to)
        seconds = round(self.clock.monotonic() - began, 3)
        self.n_rounds += 1
        self.bytes_read += stats.bytes_before
        self.bytes_saved += stats.bytes_before - stats.bytes_after
        self.journal.emit(
            ModernLogCleaned(
                topic=log.topic,
                partition=log.partition,
                offset=cleaned_to,
                bytes_before=stats.bytes_before,
                bytes_after=stats.bytes_after,
                records_before=stats.records_before,
                records_after=stats.records_after,
                seconds=seconds,
            )
        )
        return CleanerRound(log, cleaned_to, stats, seconds)
