"""Find an offset by time: the time index leads to a segment, the offset index to a batch, then record by record.

The paper's answer (§3.1): times are those of segment files, so a time is found to the segment.
"""

from __future__ import annotations

from typing import NamedTuple

from since2011.log.log import ModernLog
from since2011.wire.records import Inflate, decode_records


class Found(NamedTuple):
    """A record's offset and time."""

    offset: int
    timestamp: int


def first_at_or_after(log: ModernLog, timestamp: int, inflate: Inflate) -> Found | None:
    """The first record stamped ``timestamp`` or later; markers count as records."""
    with log.lock:
        return _first_at_or_after(log, timestamp, inflate)


def _first_at_or_after(log: ModernLog, timestamp: int, inflate: Inflate) -> Found | None:
    for segment in log.segments:
        if segment.largest_timestamp < timestamp:
            continue
        start = segment.index.position_of(max(segment.time_index.offset_before(timestamp), log.log_start_offset))
        for stored in segment.batches(start):
            header = stored.header
            if header.max_timestamp < timestamp or header.last_offset < log.log_start_offset:
                continue
            for record in decode_records(segment.read(stored.position, header.size), header, inflate):
                if record.timestamp >= timestamp and record.offset >= log.log_start_offset:
                    return Found(record.offset, record.timestamp)
    return None


def largest_timestamp(log: ModernLog, inflate: Inflate) -> Found | None:
    """The first record that carries the largest timestamp of the log (KIP-734)."""
    stamped = [segment for segment in log.segments if segment.largest_timestamp >= 0]
    if not stamped:
        return None
    largest = max(segment.largest_timestamp for segment in stamped)
    return first_at_or_after(log, largest, inflate)
