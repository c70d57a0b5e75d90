"""§3.1: messages are deleted by their age, whoever has or has not read them."""

from __future__ import annotations

import os
import time

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.alterations import RETAINED
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import numbered
from classroom.claims.harness.nursery import wait_for
from kafka2011.errors import OffsetOutOfRange
from kafka2011.log.segment import segment_name
from kafka2011.wire import EARLIEST, LATEST, encode_set

CLAIM = Claim(
    number="C14",
    section="3.1",
    title="Deleted by age, not by readers",
    sentence="A message is automatically deleted if it has been retained in the broker longer than a certain period",
    experiment="A log with segments of all ages, half of them older than the broker is told to keep. One reader "
    "has read everything, one half, one nothing. What is left after a pass of retention, and what do the readers "
    "find?",
    threshold="exactly the segments that are too old are gone, and no reader has any influence; a footnote for "
    "what a slow reader loses",
    twist="nothing is deleted before a reader has fetched it",
    dissent="Someone who counts messages and not segments: a message goes with its segment, as late as the "
    "youngest message in it.",
    later="The same, by time or size; besides, compaction keeps the last message of each key: "
    "since2011/log/cleaner.py.",
    code=("kafka2011/log/retention.py", "kafka2011/log/log.py"),
    tests=("tests/unit/log/test_retention.py",),
    walk="docs/walks/4-rewinding.md",
)

IN_A_SEGMENT = 10
HOUR_S = 3600.0


def experiment(bench: Bench) -> Figures:
    """Segments one an hour, old to new; half of them too old."""
    bench.plot("hours since the segment was written", "messages left of it")
    hours = bench.size(8, 24, 168)
    directory = bench.directory / "broker" / "t-0"
    directory.mkdir(parents=True, mode=0o700)
    now, end = time.time(), 0
    for age in range(hours, 0, -1):
        data = encode_set(numbered(IN_A_SEGMENT, first=(hours - age) * IN_A_SEGMENT))
        path = directory / segment_name(end)
        path.write_bytes(data)
        os.utime(path, (now - (age - 0.5) * HOUR_S,) * 2)
        end += len(data)
    size = end // hours
    keep = hours // 2
    altered = ["retention_at_once", *(["waits_for_readers"] if bench.twisted else [])]
    with bench.broker({"log.retention.hours": keep}, altered=altered) as broker, broker.connect() as connection:
        wait_for(lambda: (broker.notes / RETAINED).exists(), "retention has passed")
        first = connection.offsets("t", 0, EARLIEST)[0]
        left = connection.offsets("t", 0, LATEST)[0] - first
        slow = {}
        readers = {"has read all": end, "has read half": end // 2 // size * size, "has read nothing": 0}
        for name, offset in readers.items():
            try:
                connection.fetch("t", 0, offset)
                slow[name] = 0
            except OffsetOutOfRange:
                slow[name] = (first - offset) // (size // IN_A_SEGMENT)
    for age in range(1, hours + 1):
        bench.point("left", age, IN_A_SEGMENT if end - age * size >= first else 0)
    return {"segments": hours, "keep": keep, "left": left // size, "missed": slow}


def judge(figures: Figures) -> Judgement:
    """Age alone decides."""
    left, keep, missed = figures["left"], figures["keep"], figures["missed"]
    figure = f"{left} of {figures['segments']} segments are left where {keep} are young enough"
    if left != keep:
        return Judgement(Verdict.FAILS, figure)
    lost = missed["has read nothing"]
    footnote = (
        f"The reader that had read nothing was told that its offset is out of range: {lost:,} messages were deleted "
        "before it came. The promise is one of time, not of delivery; and a message goes with its whole segment."
    )
    return Judgement(Verdict.FOOTNOTE, figure, footnote=footnote)
