"""§3.1: messages are cached by the page cache only."""

from __future__ import annotations

from classroom.claims.claim import CannotTell, Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, fill, read_all
from classroom.claims.harness.meters import MB
from classroom.claims.harness.page_cache import resident_share

CLAIM = Claim(
    number="C06",
    section="3.1",
    title="No double buffering",
    sentence="avoiding double buffering---messages are only cached in the page cache",
    experiment="A broker takes in a log and gives it out, twice. Its own memory (resident, not of files) is "
    "looked at after each step, and which pages of the log are in the page cache (mincore).",
    threshold="the log is in the page cache, and the broker's own memory has grown by less than a tenth of what "
    "went through it",
    twist="the broker keeps every message as an object besides",
    dissent="A machine short of memory, where the page cache forgets the log: then there is nothing to compare, "
    "and this says so.",
    later="The same today; the heap of a broker stays small next to the machine's memory.",
    code=("kafka2011/log/log.py", "kafka2011/broker/sendfile.py"),
    tests=("tests/paper/broker/test_broker.py",),
    walk="docs/walks/3-fetch-and-sendfile.md",
)


def experiment(bench: Bench) -> Figures:
    """Memory against what went through."""
    bench.plot("MB of messages through the broker", "MB of the broker's own memory")
    size = bench.size(16, 100, 400) * MB
    with bench.broker(LAZY_FLUSH, altered=["cache"] if bench.twisted else []) as broker:
        fill(broker, "warm", MB)
        read_all(broker, "warm", 0, MB)
        before = peak = meters.anonymous_bytes(broker.pid)
        bench.point("own memory", 0, before / MB)
        end = 0
        for step in range(4):
            end = fill(broker, "t", size // 4)
            peak = max(peak, meters.anonymous_bytes(broker.pid))
            bench.point("own memory", (step + 1) * size / 4 / MB, peak / MB)
        for _ in range(2):
            read_all(broker, "t", 0, end)
            peak = max(peak, meters.anonymous_bytes(broker.pid))
        bench.point("own memory", 3 * size / MB, peak / MB)
        cached = resident_share(broker.files("t"))
    return {"log_mb": round(end / MB, 1), "grown_mb": round((peak - before) / MB, 2), "cached": round(cached, 3)}


def judge(figures: Figures) -> Judgement:
    """Cached once: by the kernel and not by the process."""
    if figures["cached"] < 0.9:
        raise CannotTell(f"only {figures['cached']:.0%} of the log is in the page cache: too little memory here")
    share = figures["grown_mb"] / figures["log_mb"]
    figure = (
        f"{figures['log_mb']:,} MB in and twice out: {figures['cached']:.0%} of the log is in the page cache, and the "
        f"broker's own memory grew by {figures['grown_mb']} MB ({share:.1%} of the log)"
    )
    return Judgement(Verdict.HOLDS if share < 0.1 else Verdict.FAILS, figure, "memory is read once after each step")
