"""§3.1: production and consumption do not become slower as data grows."""

from __future__ import annotations

import statistics

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, fill, read_all
from classroom.claims.harness.meters import MB
from classroom.claims.harness.room import ClaimBroker

CLAIM = Claim(
    number="C05",
    section="3.1",
    title="Linear in the size of the data",
    sentence="both the production and the consumption have consistent performance linear to the data size, up to "
    "many terabytes of data",
    experiment="One log grows step by step. In each step the same amount is appended and read, and so it is in "
    "an empty log beside it; the broker's CPU time is taken. A cost that grows with what is stored shows as a "
    "slope.",
    threshold="in the last third of the steps a megabyte costs at most twice what it costs in an empty log "
    "(median); the size reached is a footnote, since it is not terabytes",
    twist="the broker keeps an index of all messages and writes it anew every 500 messages",
    dissent="A disk that is full, fragmented or slower at its inner tracks; more data than memory, so that "
    "readers of old data go to the disk (claim C09).",
    later="The same, with two small index files for each segment: since2011/log/segment.py.",
    code=("kafka2011/log/log.py", "kafka2011/log/segment.py"),
    tests=("tests/unit/log/test_segment_list.py",),
    walk="docs/walks/1-a-log.md",
)


def experiment(bench: Bench) -> Figures:
    """Steps of the same size, each beside the same step in an empty log: whatever the machine does meets both."""
    bench.plot("MB stored before the step", "cost of a megabyte in and out, against the same in an empty log")
    step, steps = MB // 2 if bench.twisted else bench.size(1, 10, 60) * MB // 2, bench.size(9, 12, 15)
    altered = ["whole_index"] if bench.twisted else []
    ratios = []
    with bench.broker(LAZY_FLUSH | {"log.file.size": 64 * MB}, altered=altered) as broker:
        end = fill(broker, "t", step)  # the first step pays for what is made once
        for number in range(steps):
            fresh = _cost(broker, f"empty{number}", step)
            ratios.append(_cost(broker, "t", step) / fresh)
            bench.point("in and out", end / MB, ratios[-1])
            end += step
    return {"stored_mb": round(end / MB), "against_empty": [round(one, 3) for one in ratios]}


def judge(figures: Figures) -> Judgement:
    """The last third of the steps against the same steps in empty logs."""
    size, ratios = figures["stored_mb"], figures["against_empty"]
    third = len(ratios) // 3
    ratio = statistics.median(ratios[-third:])
    figure = f"with up to {size:,} MB stored a megabyte in and out costs {ratio:.2f} times that in an empty log"
    spread = meters.spread_of(ratios)
    if ratio > 2:
        return Judgement(Verdict.FAILS, figure, spread)
    footnote = (
        f"Seen up to {size / 1000:.2g} GB on this machine; the paper says terabytes. No step of the code depends on "
        "how much is stored but the list of segments (C04), so nothing is known that would bend the line later."
    )
    return Judgement(Verdict.FOOTNOTE, figure, spread, footnote)


def _cost(broker: ClaimBroker, topic: str, step: int) -> float:
    """CPU of appending a step and fetching it three times."""
    before = meters.cpu_s(broker.pid)
    end = fill(broker, topic, step)
    for _ in range(3):
        read_all(broker, topic, end - step, end, size=1 << 20)
    return meters.cpu_s(broker.pid) - before
