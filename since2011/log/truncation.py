"""Cut a log back to an offset: what a follower does when its leader's history parts from its own (KIP-101).

Segments beyond go, with their snapshots; indexes and epochs are cut; the producers' state is taken from the newest
snapshot before the cut, so transactions that had ended beyond it are open again. Epochs are cut on every call, also one
that changes no record: a former leader that never appended has an epoch nobody else knows.
"""

from __future__ import annotations

from since2011.log.log import ModernLog
from since2011.log.producer_replay import restore_producers


def truncate_to(log: ModernLog, offset: int) -> bool:
    """Forget everything from ``offset`` on; True if there was anything."""
    if offset < 0:
        raise ValueError(f"{log} cannot be cut at offset {offset}")
    with log.rewriting, log.lock:
        return _truncate_to(log, offset)


def _truncate_to(log: ModernLog, offset: int) -> bool:
    log.epochs.truncate_end(min(offset, log.log_end_offset))
    if offset >= log.log_end_offset:
        return False
    if offset < log.segments[0].base_offset:
        _start_at(log, offset)
        return True
    beyond = [segment for segment in log.segments if segment.base_offset > offset]
    log.segments = log.segments[: len(log.segments) - len(beyond)]
    for segment in beyond:
        segment.remove()
    log.log_end_offset = log.active.truncate(offset)
    log.snapshots.remove_from(log.log_end_offset + 1)
    log.unstable.clear()
    restore_producers(log, log.log_end_offset)
    log.log_start_offset = min(log.log_start_offset, log.log_end_offset)
    log.high_watermark = min(log.high_watermark, log.log_end_offset)
    log.unstable.replicated(log.high_watermark)
    log.recovery_point = min(log.recovery_point, log.log_end_offset)
    return True


def start_at(log: ModernLog, offset: int) -> None:
    """Forget everything and begin anew at ``offset``."""
    with log.rewriting, log.lock:
        _start_at(log, offset)


def _start_at(log: ModernLog, offset: int) -> None:
    for segment in log.segments:
        segment.remove()
    log.segments = []
    log.snapshots.remove_from(0)
    log.epochs.clear()
    log.producers.restore((), offset)
    log.unstable.clear()
    log.log_start_offset = log.log_end_offset = log.high_watermark = log.recovery_point = offset
    log.roll(offset)
