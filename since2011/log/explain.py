"""What compaction would do to a log, record by record: ``kafka2011 log clean --explain``.

The cleaner itself is asked, on a copy of the files, so that what is shown is what would happen.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kafka2011.clock import SYSTEM_CLOCK
from since2011.log.cleaner_choice import clean_range
from since2011.log.log import ModernLog
from since2011.log.recovery import open_log
from since2011.log.segment import Segment
from since2011.log.settings import LogConfig
from since2011.log.swap import clean_log
from since2011.wire.compression import compress, decompress
from since2011.wire.records import Record, decode_records

_MOST_INFLATED = 64 << 20
_inflate = partial(decompress, limit=_MOST_INFLATED)
_TEXT = 60


def explain_cleaning(directory: Path) -> Iterator[dict[str, Any]]:
    """One row per record, by key: where it is, and why it stays or goes. ``directory`` is not touched."""
    with tempfile.TemporaryDirectory(prefix="kafka2011-clean-") as place:
        copy = Path(place) / directory.name
        shutil.copytree(directory, copy)
        log = open_log(copy, *_name(directory), LogConfig(cleanup_policy=("compact",)), clean=False)
        try:
            log.raise_high_watermark(log.log_end_offset)
            yield from _explain(log)
        finally:
            log.close(clean=False)


def _name(directory: Path) -> tuple[str, int]:
    topic, _, number = directory.name.rpartition("-")
    return (topic, int(number)) if number.isdecimal() else (directory.name, 0)


def _explain(log: ModernLog) -> Iterator[dict[str, Any]]:
    before = [(segment, record) for segment in log.segments for record in _records(segment)]
    found = clean_range(log, None, SYSTEM_CLOCK.wall_ms())
    latest = {r.key: r.offset for _, r in before if r.offset < found.first_uncleanable}
    if found.first_uncleanable > found.first_dirty:
        clean_log(log, found.first_dirty, found.first_uncleanable, _inflate, compress)
    after = {record.offset for segment in log.segments for record in _records(segment)}
    for _, record in sorted(before, key=lambda pair: (pair[1].key or b"", pair[1].offset)):
        yield {
            "key": _text(record.key),
            "offset": record.offset,
            "value": _text(record.value),
            "after": "stays" if record.offset in after else "goes",
            "because": _reason(record, record.offset in after, latest, found.first_uncleanable),
        }


def _reason(record: Record, stays: bool, latest: dict[bytes | None, int], uncleanable: int) -> str:
    if record.offset >= uncleanable:
        return "the active segment, and what is not stable yet, is never cleaned"
    if record.key is None:
        return "it has no key"
    if stays and record.value is None:
        return "a tombstone stays for delete.retention.ms, so that readers that are behind see it"
    if stays:
        return "the latest of its key"
    later = latest[record.key]
    if later > record.offset:
        return f"offset {later} is later"
    return "a tombstone whose time is over" if record.value is None else "its transaction was aborted"


def _records(segment: Segment) -> Iterator[Record]:
    for stored in segment.batches():
        if not stored.header.control:
            yield from decode_records(segment.read(stored.position, stored.header.size), stored.header, _inflate)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data[:_TEXT].decode("utf-8", "backslashreplace")
