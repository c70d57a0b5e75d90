"""§3.1: the broker keeps nothing about its readers."""

from __future__ import annotations

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, fill, read_all
from classroom.claims.harness.meters import MB

CLAIM = Claim(
    number="C12",
    section="3.1",
    title="A stateless broker",
    sentence="the information about how much each consumer has consumed is not maintained by the broker, but by "
    "the consumer itself",
    experiment="More and more readers come, read a log to its end over a connection of their own, and go. The "
    "broker's own memory is looked at, and what it says about itself (/state).",
    threshold="less than 2 KB of memory remain for each reader that was there, and /state is the same as before "
    "but for its counters",
    twist="the broker keeps what each reader was given, message by message, as queues do",
    dissent="While a reader is connected it costs a socket and its buffers; that is not counted here.",
    later="Groups are kept by the broker again, by a coordinator, and offsets in a topic: "
    "consumers/group_protocol/coordinator.",
    code=("kafka2011/broker/handlers.py", "kafka2011/broker/protocol.py"),
    tests=("tests/paper/broker/test_broker.py",),
    walk="docs/walks/4-rewinding.md",
)


def experiment(bench: Bench) -> Figures:
    """Memory against the number of readers."""
    bench.plot("readers that came and went", "KB of the broker's own memory, more than before")
    readers, steps = bench.size(100, 500, 1_500), 5
    with bench.broker(LAZY_FLUSH, altered=["reader_state"] if bench.twisted else []) as broker:
        end = fill(broker, "t", MB // 2)
        for _ in range(50):
            read_all(broker, "t", 0, end)
        before, known = meters.anonymous_bytes(broker.pid), broker.state()["topics"]
        grown = 0
        for step in range(steps):
            for _ in range(readers // steps):
                read_all(broker, "t", 0, end)
            grown = meters.anonymous_bytes(broker.pid) - before
            bench.point("kept", (step + 1) * readers // steps, grown / 1000)
        same = broker.state()["topics"] == known
    return {"readers": readers, "bytes_each": round(grown / readers), "same_state": same}


def judge(figures: Figures) -> Judgement:
    """Memory that stays when a reader has gone is state about it."""
    each = figures["bytes_each"]
    figure = f"{figures['readers']:,} readers came, read everything and went: {each:,} bytes are kept for each"
    holds = each < 2_000 and figures["same_state"]
    return Judgement(Verdict.HOLDS if holds else Verdict.FAILS, figure, "memory is counted in pages of 4 KB")
