"""§3.1: without a cache in the process there is little garbage to collect."""

from __future__ import annotations

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.alterations import GC_SECONDS
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, fill, read_all
from classroom.claims.harness.meters import MB
from classroom.claims.harness.room import ClaimBroker

CLAIM = Claim(
    number="C08",
    section="3.1",
    title="Little garbage collection",
    sentence="Since Kafka doesn't cache messages in process at all, it has very little overhead in garbage "
    "collecting its memory",
    experiment="A broker whose garbage collector is timed takes in a log and gives it out; the collector's share "
    "of its CPU time is set beside that of a broker which caches messages as objects.",
    threshold="less than 2 % of the broker's CPU is spent in the collector",
    twist="the broker caches every message as an object",
    dissent="Another virtual machine: Python frees most memory by counting references, which this does not time.",
    later="The same design on the JVM: brokers run for months with collections of milliseconds.",
    code=("kafka2011/broker/intake.py", "kafka2011/wire/walk.py"),
    tests=("tests/unit/wire/test_message_sets.py",),
    walk="docs/walks/3-fetch-and-sendfile.md",
)


def experiment(bench: Bench) -> Figures:
    """The collector's share, step by step."""
    bench.plot("MB through the broker", "% of the CPU spent in the collector")
    step, steps = bench.size(6, 25, 60) * MB, bench.size(3, 4, 6)
    altered = ["gc_clock", "cache"] if bench.twisted else ["gc_clock"]
    with bench.broker(LAZY_FLUSH, altered=altered) as broker:
        fill(broker, "warm", MB)
        collected, spent = _collected(broker), meters.cpu_s(broker.pid)
        share, end = 0.0, 0
        for number in range(steps):
            end = fill(broker, "t", step)
            read_all(broker, "t", end - step, end)
            share = (_collected(broker) - collected) / (meters.cpu_s(broker.pid) - spent)
            bench.point("collector", (number + 1) * step / MB, 100 * share)
    return {"mb": round(end / MB, 1), "share": round(share, 5)}


def judge(figures: Figures) -> Judgement:
    """A share of the same process's CPU: other programs do not matter."""
    share, size = figures["share"], figures["mb"]
    figure = f"{share:.2%} of the broker's CPU went into the garbage collector while {size:,} MB came and went"
    spread = "a share within one process; the plot shows it after each step"
    if figures["share"] > 0.02:
        return Judgement(Verdict.FAILS, figure, spread)
    footnote = "In Python most memory is freed by counting references; only the collector of cycles is timed here."
    return Judgement(Verdict.FOOTNOTE, figure, spread, footnote)


def _collected(broker: ClaimBroker) -> float:
    """Seconds the collector ran so far."""
    path = broker.notes / GC_SECONDS
    return float(path.read_text() or 0) if path.exists() else 0.0
