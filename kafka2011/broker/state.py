"""What a broker holds, as JSON: the topics of ``/state``."""

from __future__ import annotations

from typing import Any

from kafka2011.log.log import Log
from kafka2011.log.store import LogStore


def topics(store: LogStore) -> dict[str, Any]:
    """Every topic with its partitions."""
    found: dict[str, Any] = {}
    for log in store.logs():
        found.setdefault(log.topic, {"partitions": {}})["partitions"][str(log.partition)] = _partition(log)
    return found


def offline(store: LogStore) -> dict[str, str]:
    """The partitions that are not served, and why."""
    return {str(where): str(reason) for where, reason in store.offline.items()}


def _partition(log: Log) -> dict[str, Any]:
    return {
        "first_offset": log.first_offset,
        "flushed_offset": log.flushed_offset,
        "end_offset": log.end_offset,
        "size": log.size,
        "segments": [
            {"start": s.start, "size": s.size, "flushed_size": s.flushed_size, "mtime_ms": s.mtime_ms}
            for s in log.segments()
        ],
    }
