"""Put cleaned segments in the place of the old ones, so that a crash at any step leaves the old log or the new one.

    write <base>.log.cleaned and its indexes, fsync   a crash here: .cleaned is deleted, the old segments are whole
    rename to .swap, the last segment first           some .cleaned left: the .swap files are deleted too
    all .swap                                         from here on the clean-up counts: the start finishes it
    old files are renamed .deleted                    the start removes them
    .swap becomes the normal name, fsync directory    the start renames the rest
"""

from __future__ import annotations

import os
from pathlib import Path

from kafka2011.failpoints import fail_point
from kafka2011.log.directory import sync_directory
from since2011.log.cleaner import DEFAULT_MAP_KEYS, CleanerStats, Rewriter, build_map
from since2011.log.files import CLEANED, DELETED, SWAP, parse_name
from since2011.log.log import ModernLog
from since2011.log.segment import MAX_RELATIVE_OFFSET, Segment
from since2011.wire.records import Deflate, Inflate


def clean_log(
    log: ModernLog,
    first_dirty: int,
    first_uncleanable: int,
    inflate: Inflate,
    deflate: Deflate,
    *,
    most_keys: int = DEFAULT_MAP_KEYS,
) -> tuple[int, CleanerStats]:
    """One round; the offset up to which the log is clean now, and what it cost."""
    found = build_map(log, first_dirty, first_uncleanable, inflate, most_keys)
    rewriter = Rewriter(log, found, log.clock.wall_ms(), inflate, deflate)
    old = [segment for segment in log.segments[:-1] if segment.base_offset < found.end]
    for group in _groups(old, log.config.segment_bytes):
        cleaned = _write(log, group, rewriter)
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


def _write(log: ModernLog, group: list[Segment], rewriter: Rewriter) -> Segment:
    """The cleaned segment of a group, under the name of its first one."""
    cleaned = Segment(log.directory, group[0].base_offset, log.config, suffix=CLEANED)
    for path in cleaned.paths:
        path.unlink(missing_ok=True)
    cleaned = Segment(log.directory, group[0].base_offset, log.config, suffix=CLEANED)
    cleaned.index.load()
    cleaned.time_index.load()
    for segment in group:
        for header, batch, entry in rewriter.clean(segment):
            cleaned.append(batch, header.last_offset, (header.max_timestamp, header.last_offset))
            if entry is not None:
                cleaned.txn_index.append(entry)
    cleaned.finish()
    cleaned.flush()
    times = os.stat(group[-1].path)
    os.utime(cleaned.path, ns=(times.st_atime_ns, times.st_mtime_ns))
    fail_point("modern.clean.after_write")
    return cleaned


def _replace(log: ModernLog, group: list[Segment], cleaned: Segment) -> None:
    cleaned.close()
    for path in cleaned.paths:
        if path.exists():
            _rename(path, SWAP)
            fail_point("modern.clean.between_swaps")
    sync_directory(log.directory)
    fail_point("modern.clean.after_swap")
    for segment in group:
        for path in segment.paths:
            if path.exists():
                os.rename(path, path.with_name(path.name + DELETED))
    fail_point("modern.clean.after_deleted")
    for path in Segment(log.directory, cleaned.base_offset, log.config, suffix=SWAP).paths:
        if path.exists():
            os.rename(path, path.with_suffix(""))
    sync_directory(log.directory)
    fail_point("modern.clean.after_rename")
    new = Segment(log.directory, cleaned.base_offset, log.config)
    new.load_indexes()
    first = log.segments.index(group[0])
    log.segments[first : first + len(group)] = [new]
    for segment in group:
        segment.close()
        if segment.base_offset != new.base_offset:
            log.snapshots.remove(segment.base_offset)
    for name in os.listdir(log.directory):
        parsed = parse_name(name)
        if parsed is not None and parsed[2] == DELETED:
            (log.directory / name).unlink()


def _rename(path: Path, suffix: str) -> None:
    os.rename(path, path.with_suffix(suffix))
