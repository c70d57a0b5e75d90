"""Which segments may go: below the log start, over the size, older than the time. Never beyond the high watermark.

Age is that of the newest record of a segment, by the records' own timestamps. The paper's answer (§3.1): by the time of
the file, whoever has read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from since2011.log.events import ModernSegmentsDeleted
from since2011.log.log import ModernLog
from since2011.log.segment import Segment


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many of the oldest segments go, and by which rule."""

    n_segments: int
    reason: str


def choose(log: ModernLog, now_ms: int) -> list[Verdict]:
    """What each rule says, in the order in which they are asked."""
    config = log.config
    found = [Verdict(_count(log, lambda s, upper: upper <= log.log_start_offset), "below the log start")]
    if config.deletes and config.retention_bytes >= 0:
        excess = log.size - config.retention_bytes

        def over(segment: Segment, upper: int) -> bool:
            nonlocal excess
            excess -= segment.size
            return excess >= 0

        found.append(Verdict(_count(log, over), "retention.bytes"))
    if config.deletes and config.retention_ms >= 0:
        oldest = now_ms - config.retention_ms
        found.append(Verdict(_count(log, lambda s, upper: s.retention_timestamp(now_ms) < oldest), "retention.ms"))
    return [verdict for verdict in found if verdict.n_segments]


def _count(log: ModernLog, may_go: Callable[[Segment, int], bool]) -> int:
    count = 0
    for place, segment in enumerate(log.segments):
        is_active = place + 1 == len(log.segments)
        upper = log.log_end_offset if is_active else log.segments[place + 1].base_offset
        if upper > log.high_watermark or (is_active and segment.size == 0) or not may_go(segment, upper):
            break
        count += 1
    return count


def apply_retention(log: ModernLog) -> int:
    """Delete what may go; how many segments went. The log start is raised before any file is touched."""
    gone = 0
    while n_segments := _delete_by_next_rule(log):
        gone += n_segments
    return gone


def _delete_by_next_rule(log: ModernLog) -> int:
    with log.rewriting, log.lock:
        verdicts = choose(log, log.clock.wall_ms())
        if not verdicts:
            return 0
        verdict = verdicts[0]
        old = _let_go(log, verdict)
    size = sum(segment.size for segment in old)
    for segment in old:
        segment.remove()
        log.snapshots.remove(segment.base_offset)
    log.journal.emit(
        ModernSegmentsDeleted(
            topic=log.topic,
            partition=log.partition,
            n_segments=len(old),
            n_bytes=size,
            log_start_offset=log.log_start_offset,
            reason=verdict.reason,
        )
    )
    return len(old)


def _let_go(log: ModernLog, verdict: Verdict) -> list[Segment]:
    if verdict.n_segments == len(log.segments):
        log.roll()
    old = log.segments[: verdict.n_segments]
    log.segments = log.segments[verdict.n_segments :]
    start = log.segments[0].base_offset
    if start > log.log_start_offset:
        log.log_start_offset = start
        log.epochs.raise_start(start)
    return old
