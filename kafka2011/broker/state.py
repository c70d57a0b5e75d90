"""What a broker holds and how it is: the topics of ``/state``, the lines of ``/healthz``."""

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


def missing(store: LogStore) -> dict[str, list[dict[str, Any]]]:
    """The files that are gone, by partition, until somebody accepts that."""
    return {
        str(where): [{"file": one.name, "start": one.start, "end": one.end} for one in gone]
        for where, gone in store.missing.items()
    }


def health(store: LogStore) -> tuple[bool, list[str]]:
    """Whether a restart would do good, and everything a person should look at.

    Only a log that the disk has failed is mended by a restart. Damaged and missing files and a full disk are not: the
    rest is served, and a program that restarts what is not healthy would take that away as well.
    """
    lines = [f"failed {log.topic}-{log.partition}: {log.failed}" for log in store.logs() if log.failed]
    well = not lines
    if store.no_room is not None:
        lines.append(store.no_room)
    lines += (f"full {log.topic}-{log.partition}: {log.full}" for log in store.logs() if log.full)
    lines += (f"offline {where}" for where in sorted(store.offline))
    lines += (f"missing {one}" for where in sorted(store.missing) for one in store.missing[where])
    return well, lines


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
