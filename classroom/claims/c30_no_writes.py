"""§5: a broker that is only read from does not write."""

from __future__ import annotations

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, fill, read_all
from classroom.claims.harness.meters import MB

CLAIM = Claim(
    number="C30",
    section="5",
    title="Consuming writes nothing",
    sentence="In contrast, there were no disk write activities on the Kafka broker.",
    experiment="A log is filled and comes to rest; then several readers read all of it. The bytes that the "
    "broker gave the disk to write meanwhile are counted by the kernel (/proc/PID/io).",
    threshold="less than a thousandth of what is read is written",
    twist="the broker notes on disk what each reader was given",
    dissent="A log of requests, if one is switched on; file systems that note the time of each access (not with "
    "relatime).",
    later="Commits of offsets are writes again, to a compacted topic; and a follower's fetches move the high "
    "watermark.",
    code=("kafka2011/broker/handlers.py",),
    tests=("tests/paper/broker/test_broker.py",),
    walk="docs/walks/4-rewinding.md",
)


def experiment(bench: Bench) -> Figures:
    """Read and watch the disk."""
    bench.plot("MB read", "KB written by the broker")
    size, readers = bench.size(2, 20, 60) * MB, bench.size(5, 8, 12)
    with bench.broker(LAZY_FLUSH, altered=["reader_state"] if bench.twisted else []) as broker:
        end = fill(broker, "t", size)
        broker.restart()  # at rest: nothing is left to be flushed or written down
        read_all(broker, "t", 0, end)
        before, written = meters.io(broker.pid), 0
        for number in range(readers):
            read_all(broker, "t", 0, end)
            written = (meters.io(broker.pid) - before).write_bytes
            bench.point("written", (number + 1) * end / MB, written / 1000)
    return {"read": readers * end, "written": written}


def judge(figures: Figures) -> Judgement:
    """Bytes written for bytes read."""
    read, written = figures["read"], figures["written"]
    figure = f"{written:,} bytes were written while {read:,} were read"
    return Judgement(Verdict.HOLDS if written < read / 1000 else Verdict.FAILS, figure, "counted by the kernel")
