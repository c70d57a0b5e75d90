"""§3.1: a consumer can rewind and consume again."""

from __future__ import annotations

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, MESSAGE_BYTES, chunks, fill
from classroom.claims.harness.meters import MB
from classroom.claims.harness.room import ClaimBroker
from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error

CLAIM = Claim(
    number="C13",
    section="3.1",
    title="Rewinding is free",
    sentence="A consumer can deliberately rewind back to an old offset and re-consume data. This violates the "
    "common contract of a queue",
    experiment="Readers read a log to its end, rewind, and read it again, from older and older offsets. The "
    "bytes are compared, and the broker's CPU time for a megabyte with that of the first reading.",
    threshold="every rewind gives the same bytes, at no more than 1.5 times the cost of a first reading (the "
    "best of each)",
    twist="the broker keeps the contract of a queue: what was given out once is gone",
    dissent="Retention: beyond it there is nothing to rewind to (C14). A cold cache makes old data cost disk "
    "reads (C09).",
    later="The same: seek, and a tool that resets the offsets of a group.",
    code=("kafka2011/broker/handlers.py", "consumers/seek.py"),
    tests=("tests/paper/broker/test_broker.py",),
    walk="docs/walks/4-rewinding.md",
)

SET_BYTES = 500 * (MESSAGE_BYTES + 10)


def experiment(bench: Bench) -> Figures:
    """Readers that read once, rewind, and read again, from older and older offsets."""
    bench.plot("MB rewound", "ms of the broker's CPU for a megabyte")
    size, rewinds = bench.size(4, 24, 64) * MB, bench.size(4, 8, 16)
    firsts, agains, refused, different = [], [], 0, 0
    with bench.broker(LAZY_FLUSH, altered=["queue"] if bench.twisted else []) as broker:
        end = fill(broker, "t", size)
        for number in range(rewinds):
            start = end * (rewinds - number) // (2 * rewinds) // SET_BYTES * SET_BYTES
            with broker.connect() as connection:
                try:
                    first, data = _read(broker, connection, start, end)
                    again, repeated = _read(broker, connection, start, end)
                except Kafka2011Error:
                    refused += 1
                    continue
            firsts.append(first)
            agains.append(again)
            different += data != repeated
            bench.point("first reading", (end - start) / MB, first)
            bench.point("rewound", (end - start) / MB, again)
    if bench.twisted:
        bench.point("refused", size / MB, refused)
    return {
        "mb": round(end / MB, 1),
        "rewinds": rewinds,
        "refused": refused,
        "different": different,
        "ratio": round(min(agains) / min(firsts), 3) if agains else None,
    }


def judge(figures: Figures) -> Judgement:
    """The same bytes for the same price."""
    n = figures["rewinds"]
    good = n - figures["refused"] - figures["different"]
    figure = f"{good} of {n} rewinds over up to {figures['mb']} MB gave the same bytes"
    if good < n or figures["ratio"] is None:
        return Judgement(Verdict.FAILS, figure)
    figure += f", at {figures['ratio']:.2f} of the CPU of a first reading"
    cheap = figures["ratio"] <= 1.5
    return Judgement(Verdict.HOLDS if cheap else Verdict.UNKNOWN, figure, "the best reading of each kind")


def _read(broker: ClaimBroker, connection: BrokerConnection, start: int, end: int) -> tuple[float, bytes]:
    """CPU for a megabyte, and the bytes."""
    before = meters.cpu_s(broker.pid)
    data = b"".join(chunks(connection, "t", start, end, size=1 << 20))
    return 1000 * (meters.cpu_s(broker.pid) - before) / (len(data) / MB), data
