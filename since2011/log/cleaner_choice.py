"""When a compacted log is worth cleaning, and how far it may be cleaned. Pure.

    log start … clean … first dirty … dirty, cleanable … first uncleanable … active segment

Cleaned are whole segments only, never the active one, nothing beyond the last stable offset, nothing younger than
``min.compaction.lag.ms``. The paper has no keys, so nothing to compact (§3.1 deletes by age).
"""

from __future__ import annotations

from dataclasses import dataclass

from since2011.log.log import ModernLog


@dataclass(frozen=True, slots=True)
class CleanRange:
    """What the cleaner would do with a log now."""

    first_dirty: int
    first_uncleanable: int
    clean_bytes: int
    dirty_bytes: int
    must: bool
    """Records are older than ``max.compaction.lag.ms`` allows them to lie around."""

    @property
    def dirty_ratio(self) -> float:
        """The share of bytes the cleaner has not seen."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def clean_range(log: ModernLog, cleaned_to: int | None, now_ms: int) -> CleanRange:
    """What may be cleaned: from the end of the last round to the first segment that has to wait."""
    start, end = log.log_start_offset, log.log_end_offset
    first_dirty = cleaned_to if cleaned_to is not None and start <= cleaned_to <= end else start
    limits = [log.last_stable_offset, log.active.base_offset]
    dirty = [segment for segment in log.segments[:-1] if segment.base_offset >= first_dirty]
    lag = log.config.min_compaction_lag_ms
    if lag > 0:
        limits += [segment.base_offset for segment in dirty if segment.largest_timestamp > now_ms - lag][:1]
    uncleanable = max(min(limits), first_dirty)
    # Whole segments only: a limit inside one keeps all of it.
    inside = [segment.base_offset for segment in log.segments if segment.base_offset <= uncleanable]
    uncleanable = max(inside[-1] if inside else first_dirty, first_dirty)
    cleanable = [segment for segment in dirty if segment.base_offset < uncleanable]
    oldest = now_ms - log.config.max_compaction_lag_ms
    stamped = [segment.first_timestamp() for segment in cleanable if segment.first_timestamp() >= 0]
    return CleanRange(
        first_dirty=first_dirty,
        first_uncleanable=uncleanable,
        clean_bytes=sum(segment.size for segment in log.segments if segment.base_offset < first_dirty),
        dirty_bytes=sum(segment.size for segment in cleanable),
        must=bool(stamped) and min(stamped) < oldest,
    )


def worth_cleaning(log: ModernLog, found: CleanRange) -> bool:
    """Whether a round is due."""
    if not log.config.compacted or not found.dirty_bytes:
        return False
    return found.dirty_ratio > log.config.min_cleanable_dirty_ratio or found.must
