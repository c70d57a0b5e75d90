"""Put cleaned segments in the place of the old ones, so that a crash at any step leaves the old log or the new one.

write <base>.log.cleaned and its indexes, fsync   a crash here: .cleaned is deleted, the old segments are whole
rename to .swap, the last segment first           some .cleaned left: the .swap files are deleted too
all .swap                                         from here on the clean-up counts: the start finishes it
old files are renamed .deleted                    the start removes them
.swap becomes the normal name, fsync directory    the start renames the rest
"""

from __future__ import annotations

import os

from kafka2011.errors import Kafka2011Error
from kafka2011.failpoints import fail_point
from kafka2011.log.directory import sync_directory
from since2011.log.cleaner import CleanerStats, Rewriter, build_map
from since2011.log.files import CLEANED, DELETED, SWAP
from since2011.log.log import ModernLog
from since2011.log.offset_map import DEFAULT_MAP_BYTES
from since2011.log.pace import Pace, unhurried
from since2011.log.segment import MAX_RELATIVE_OFFSET, Segment
from since2011.wire.records import Deflate, Inflate


class CleaningStopped(Kafka2011Error):
    """The log was cut, deleted or closed while it was cleaned; nothing is changed."""


def clean_log(
    log: ModernLog,
    first_dirty: int,
    first_uncleanable: int,
    inflate: Inflate,
    deflate: Deflate,
    *,
    most_bytes: int = DEFAULT_MAP_BYTES,
    pace: Pace = unhurried,
) -> tuple[int, CleanerStats]:
    """One round; the offset up to which the log is clean now, and what it cost. Raises CleaningStopped.

    ``pace`` is called with the bytes of each batch that was worked on, and may wait.
    """
    found = build_map(log, first_dirty, first_uncleanable, inflate, most_bytes, pace)
    rewriter = Rewriter(log, found, log.clock.wall_ms(), inflate, deflate)
    with log.lock:
        old = [segment for segment in log.segments[:-1] if segment.base_offset < found.end]
    for group in _groups(old, log.config.segment_bytes):
        cleaned = _write(log, group, rewriter, pace)
        _replace(log, group, cleaned)
    return found.end, rewriter.stats


def _groups(segments: list[Segment], most_bytes: int) -> list[list[Segment]]:
    """Neighbours that fit into one segment together."""
    groups: list[list[Segment]] = []
    for segment in segments:
        group = groups[-1] if groups else None
        fits = group is not None and (
            sum(s.size for s in group) + segment.size <= most_bytes
            and segment.base_offset - group[0].base_offset < MAX_RELATIVE_OFFSET - 1
        )
        if group is not None and fits:
            group.append(segment)
        else:
            groups.append([segment])
    return groups


def _write(log: ModernLog, group: list[Segment], rewriter: Rewriter, pace: Pace) -> Segment:
    """The cleaned segment of a group, under the name of its first one."""
    Segment(log.directory, group[0].base_offset, log.config, suffix=CLEANED).remove()
    cleaned = Segment(log.directory, group[0].base_offset, log.config, suffix=CLEANED)
    try:
        cleaned.create()
        for segment in group:
            for header, batch, entry in rewriter.clean(segment):
                if batch is not None:
                    cleaned.append(batch, header.last_offset, (header.max_timestamp, header.last_offset))
                if entry is not None:
                    cleaned.txn_index.append(entry)
                pace(header.size)
        cleaned.finish()
        cleaned.flush()
        times = os.stat(group[-1].path)
    except FileNotFoundError as error:
        cleaned.remove()
        raise CleaningStopped(f"{log} lost a segment while it was cleaned: {error}") from error
    except BaseException:
        cleaned.remove()
        raise
    os.utime(cleaned.path, ns=(times.st_atime_ns, times.st_mtime_ns))
    fail_point("modern.clean.after_write")
    return cleaned


def _replace(log: ModernLog, group: list[Segment], cleaned: Segment) -> None:
    with log.rewriting:
        if any(segment not in log.segments for segment in group):
            cleaned.remove()
            raise CleaningStopped(f"{log} was cut while it was cleaned")
        cleaned.rename(SWAP)
        sync_directory(log.directory)
        fail_point("modern.clean.after_swap")
        with log.lock:
            for segment in group:
                segment.rename(DELETED)
            fail_point("modern.clean.after_deleted")
            cleaned.rename("")
            first = log.segments.index(group[0])
            log.segments = [*log.segments[:first], cleaned, *log.segments[first + len(group) :]]
        fail_point("modern.clean.after_rename")
        sync_directory(log.directory)
    for segment in group:
        segment.remove()
        if segment.base_offset != cleaned.base_offset:
            log.snapshots.remove(segment.base_offset)
