"""What the observatory knows of one moment, and the moments it keeps.

A frame is plain JSON, because it is recorded, replayed and sent as it is:

| key | content |
|---|---|
| t | wall clock, ms |
| brokers | id -> {host, port, alive, connections, counters} |
| topics | topic -> {"0-1": {first, flushed, end, size, segments: [[start, size, flushed], …], missing}} |
| groups | group -> {kind, state, members: [id], owners: {topic: {"0-1": member}}, offsets: {topic: {"0-1": n}}} |
| tree | [[path, value, session or null, watched], …] |
| changes | [[path, "new" or "gone", session], …] since the frame before |
| names | consumer id -> name of its process, where known |
| not_reading | consumer id -> "dead", "paused" or "stuck": registered, and yet it does not read |
| events | what the journals said since the frame before |
| struck | faults the page struck since the frame before: {t, title, target} |
| loads | reports of the last loads |

A partition of a modern topic has ``era`` "modern", ``files`` ([[start, bytes, index entries, time index entries], …])
and ``cleanup``; its offsets count records, and ``flushed`` is its high watermark.

Of a broker with standbys ``standby`` says {member, epoch, in_sync}; its partitions have ``held``: {leader, in_sync,
ends: {member: offset}, epochs: [[epoch, start], …]}, and ``flushed`` is the watermark.

A group that was not read whole (there are too many nodes, and nobody looks at it) is marked ``partial``.
"""

from __future__ import annotations

import bisect
import json
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from classroom.observatory.marks import Mark, joined, marks_of

Frame = dict[str, Any]

KEEP = 3600
"""About an hour of frames at one a second; older ones fall off the left end of the time strip."""

MOST_PARTS = 2_000_000
"""Nodes, partitions and offsets of all frames together: a large cluster is remembered for a shorter time."""


class Film:
    """The frames in order of time. Thread: the reactor."""

    def __init__(self, frames: Iterable[Frame] = (), *, keep: int = KEEP, most_parts: int = MOST_PARTS) -> None:
        self._frames: deque[Frame] = deque(frames)
        self._keep, self._most_parts = keep, most_parts
        self._parts = sum(map(_parts, self._frames))
        self._marks: list[Mark] = []
        for frame in self._frames:
            self._marks = joined(self._marks, marks_of(frame))

    def append(self, frame: Frame) -> None:
        """Add the newest frame; the oldest ones fall off when the film is full."""
        self._frames.append(frame)
        self._parts += _parts(frame)
        while len(self._frames) > self._keep or (self._parts > self._most_parts and len(self._frames) > 1):
            self._parts -= _parts(self._frames.popleft())
        if new := marks_of(frame):
            self._marks = joined([mark for mark in self._marks if mark["t"] >= self.first], new)

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[Frame]:
        return iter(self._frames)

    @property
    def first(self) -> int:
        return int(self._frames[0]["t"]) if self._frames else 0

    @property
    def last(self) -> int:
        return int(self._frames[-1]["t"]) if self._frames else 0

    def marks(self, most: int) -> list[Mark]:
        """The newest marks of the time that is kept, oldest first."""
        return [mark for mark in self._marks[-most:] if mark["t"] >= self.first]

    def at(self, t: int | None = None) -> Frame | None:
        """The frame of moment ``t``: the last one not after it; without ``t``, the newest."""
        if not self._frames:
            return None
        if t is None:
            return self._frames[-1]
        place = bisect.bisect_right(self._frames, t, key=lambda frame: int(frame["t"]))
        return self._frames[max(place - 1, 0)]

    def between(self, start: int, end: int) -> list[Frame]:
        """The frames of a span of time, oldest first."""
        found: list[Frame] = []
        for frame in reversed(self._frames):
            if int(frame["t"]) < start:
                break
            if int(frame["t"]) <= end:
                found.append(frame)
        return found[::-1]


def broker_is_gone(frame: Frame, number: str) -> bool:
    """True if a broker was seen once and is not registered in this frame: nobody can read what it holds."""
    known = frame["brokers"].get(number)
    return known is not None and not known["alive"]


def is_modern(log: dict[str, Any]) -> bool:
    """True for a log of today, whose offsets count records and not bytes."""
    return log.get("era") == "modern"


def bytes_written(log: dict[str, Any]) -> int:
    """How many bytes a log has taken: its end, where offsets are bytes; of a modern one what it holds."""
    return int(log["size"] if is_modern(log) else log["end"])


def _parts(frame: Frame) -> int:
    partitions = sum(map(len, frame["topics"].values()))
    return len(frame["tree"]) + partitions + len(frame["groups"]) + len(frame["events"]) + 1


def save(film: Film) -> Iterator[bytes]:
    """A recording: one frame a line, a header first."""
    yield json.dumps({"kafka2011": "recording", "version": 1}).encode() + b"\n"
    for frame in film:
        yield json.dumps(frame, separators=(",", ":")).encode() + b"\n"


def load(path: Path) -> Film:
    """Read a recording; raise ValueError naming the line that is wrong."""
    frames: list[Frame] = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                value = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: not JSON ({error}); is this a saved run?") from error
            if number == 1:
                if not isinstance(value, dict) or value.get("kafka2011") != "recording":
                    raise ValueError(f"{path} is not a saved run of the observatory")
                continue
            if not isinstance(value, dict) or "t" not in value:
                raise ValueError(f"{path}, line {number}: not a frame")
            frames.append(value)
    if not frames:
        raise ValueError(f"{path} holds no frames")
    return Film(frames, keep=len(frames))
