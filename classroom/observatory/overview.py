"""The opening picture: producers, brokers, consumers and the warehouse, with what flows between them.

Paper: §3 (who is there), §4 (a warehouse behind it).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from classroom.observatory.frames import Frame, bytes_written

GROUPS = 4
TOPICS = 5
POINTS = 60


def flow(frame: Frame, before: Frame, window: list[Frame]) -> dict[str, Any]:
    """Rates between ``before`` and ``frame``; None where nothing can be said yet."""
    groups = sorted(frame["groups"], key=lambda name: (-len(frame["groups"][name]["members"]), name))
    loads = frame["loads"]
    return {
        "topics": _topics(frame, before),
        "groups": [_group(name, frame, before) for name in groups[:GROUPS]],
        "more_groups": max(len(groups) - GROUPS, 0),
        "zookeeper": _registries(frame),
        "load": {key: loads[0][key] for key in ("load", "t", "state", "rows", "bytes", "audit")} if loads else None,
        "trend": _trend(window),
    }


def _registries(frame: Frame) -> dict[str, int]:
    """How much stands in each of the four registries of §3.2, and how many sessions keep it there."""
    counts = dict.fromkeys(("brokers", "consumers", "owners", "offsets"), 0)
    for path, *_ in frame["tree"]:
        match path.strip("/").split("/"):
            case ["brokers", "ids", _]:
                counts["brokers"] += 1
            case ["consumers", _, "ids", _]:
                counts["consumers"] += 1
            case ["consumers", _, "owners" | "offsets" as kind, _, _]:
                counts[kind] += 1
    return counts | {"sessions": len({session for _, _, session, _ in frame["tree"] if session})}


def _topics(frame: Frame, before: Frame) -> list[dict[str, Any]]:
    rows = [{"name": name, "rate": _grown(name, frame, before)} for name in frame["topics"]]
    return sorted(rows, key=lambda row: (-(row["rate"] or 0), row["name"]))[:TOPICS]


def _grown(topic: str, frame: Frame, before: Frame) -> float | None:
    """Bytes a second by which the topic grew."""
    return _rate(_ends(topic, frame), _ends(topic, before), frame, before)


def _ends(topic: str, frame: Frame) -> int | None:
    logs = frame["topics"].get(topic)
    return None if logs is None else sum(map(bytes_written, logs.values()))


def _rate(now: int | None, then: int | None, frame: Frame, before: Frame) -> float | None:
    seconds = float(frame["t"] - before["t"]) / 1000
    if now is None or then is None or seconds <= 0 or now < then:
        return None
    return (now - then) / seconds


def _group(name: str, frame: Frame, before: Frame) -> dict[str, Any]:
    known = frame["groups"][name]
    not_reading = frame.get("not_reading", {})
    return {
        "name": name,
        "kind": known["kind"],
        "members": len(known["members"]),
        "not_reading": sum(member in not_reading for member in known["members"]),
        "rate": _rate(_places(name, frame), _places(name, before), frame, before),
    }


def _places(name: str, frame: Frame) -> int | None:
    """Bytes a group has read, by the offsets it stored. It can only be compared with itself."""
    known = frame["groups"].get(name)
    if known is None or known.get("partial"):
        return None
    return sum(int(offset) for offsets in known["offsets"].values() for offset in offsets.values())


def _trend(window: list[Frame]) -> list[list[float]]:
    """Bytes a second published, over the window: ``[t, rate]``."""
    steps = window[:: max(1, len(window) // POINTS)]
    points = []
    for before, frame in pairwise(steps):
        grown = [_grown(topic, frame, before) for topic in frame["topics"]]
        points.append([frame["t"], sum(rate for rate in grown if rate is not None)])
    return points
