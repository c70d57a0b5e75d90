"""§3.1: one search in a short list of offsets finds the segment file."""

from __future__ import annotations

import os
import statistics

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import numbered
from classroom.claims.harness.room import ClaimBroker
from kafka2011.log.segment import segment_name
from kafka2011.wire import FetchRequest, encode_set

CLAIM = Claim(
    number="C04",
    section="3.1",
    title="One search in a short list",
    sentence="The broker locates the segment file where the requested message resides by searching the offset list",
    experiment="Logs of few and of very many segment files, one message in each. Fetches at random offsets; the "
    "broker's CPU time for each is taken from the scheduler. The start, which makes the list, is measured too.",
    threshold="a fetch costs at most twice as much CPU with the longest list as with the shortest; a footnote if "
    "the start costs more than twice as much",
    twist="the list is walked from its beginning instead of searched",
    dissent="A log of ten million segments; or a cold directory, where opening the file costs more than finding "
    "its name.",
    later="The same list, and inside a segment a sparse index with a binary search: since2011/log/indexes.py.",
    code=("kafka2011/log/segment_list.py",),
    tests=("tests/paper/log/test_simple_storage.py",),
    walk="docs/walks/1-a-log.md",
)

AT_ONCE = 200


def experiment(bench: Bench) -> Figures:
    """The same fetches against lists of growing length, in rounds that take turns."""
    bench.plot("segment files", "µs of the broker's CPU for a fetch", log=True)
    lengths = (10, 2_500) if bench.scale.value == 0 else (10, 100, 1_000, bench.size(0, 5_000, 10_000))
    rounds, fetches = bench.size(5, 7, 11), bench.size(400, 1_000, 2_000)
    data = encode_set(numbered(1))
    costs: dict[int, list[float]] = {n: [] for n in lengths}
    starts: dict[int, float] = {}
    brokers: dict[int, ClaimBroker] = {}
    opened = []
    try:
        for n in lengths:
            directory = bench.directory / f"log-{n}" / "t-0"
            directory.mkdir(parents=True, mode=0o700)
            first = directory / segment_name(0)
            first.write_bytes(data)
            for k in range(1, n):
                os.link(first, directory / segment_name(k * len(data)))  # all alike, and quickly made
            held = bench.broker(log_dir=directory.parent, altered=["scan"] if bench.twisted else [])
            brokers[n] = held.__enter__()
            opened.append(held)
            starts[n] = meters.cpu_s(brokers[n].pid)
        for _ in range(rounds):
            for n, broker in brokers.items():
                costs[n].append(_cost(bench, broker, n, len(data), fetches))
    finally:
        for held in opened:
            held.__exit__(None, None, None)
    for n in lengths:
        bench.point("a fetch", n, statistics.median(costs[n]))
    shortest, longest = lengths[0], lengths[-1]
    return {
        "segments": list(lengths),
        "microseconds": {str(n): [round(one, 2) for one in found] for n, found in costs.items()},
        "ratio": round(min(costs[longest]) / min(costs[shortest]), 3),
        "start_cpu_s": {str(n): round(s, 3) for n, s in starts.items()},
    }


def judge(figures: Figures) -> Judgement:
    """The best round of each: whatever disturbs a round only makes it slower."""
    shortest, longest = figures["segments"][0], figures["segments"][-1]
    ratio, starts, costs = figures["ratio"], figures["start_cpu_s"], figures["microseconds"]
    figure = (
        f"a fetch costs {ratio:.2f} times as much with {longest:,} segments as with {shortest} "
        f"({min(costs[str(longest)]):.1f} and {min(costs[str(shortest)]):.1f} µs of the broker's CPU)"
    )
    spread = f"µs with {longest:,}: {meters.spread_of(costs[str(longest)])}"
    if ratio > 2:
        return Judgement(Verdict.FAILS, figure, spread)
    slower = starts[str(longest)] / starts[str(shortest)]
    if slower > 2:
        footnote = (
            f"The list is made at the start by looking at every file: {starts[str(longest)]:.2f} s of CPU with "
            f"{longest:,} segments, {starts[str(shortest)]:.2f} s with {shortest}. What a fetch saves, a start pays."
        )
        return Judgement(Verdict.FOOTNOTE, figure, spread, footnote)
    return Judgement(Verdict.HOLDS, figure, spread)


def _cost(bench: Bench, broker: ClaimBroker, n: int, size: int, fetches: int) -> float:
    """Microseconds of the broker's CPU for a fetch at a random offset; many fetches travel in one request."""
    with broker.connect() as connection:
        connection.fetch("t", 0, 0, size)
        before = meters.cpu_s(broker.pid)
        for _ in range(fetches // AT_ONCE):
            offsets = [size * bench.random.randrange(n) for _ in range(AT_ONCE)]
            connection.multifetch([FetchRequest("t", 0, offset, size) for offset in offsets])
        return 1e6 * (meters.cpu_s(broker.pid) - before) / fetches
