"""§3.1: the cache stays warm when a broker process is restarted."""

from __future__ import annotations

from classroom.claims.claim import CannotTell, Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, fill, read_all
from classroom.claims.harness.meters import MB
from classroom.claims.harness.page_cache import evict, resident_share
from classroom.claims.harness.room import ClaimBroker

CLAIM = Claim(
    number="C07",
    section="3.1",
    title="Warm cache over a restart",
    sentence="This has the additional benefit of retaining warm cache even when a broker process is restarted.",
    experiment="A log is filled, the broker is stopped and started again, and all of it is read: how many bytes "
    "come from the disk (/proc/PID/io)? As a control the same after the log was put out of the page cache.",
    threshold="after a restart less than 5 % of the log comes from the disk, and in the control more than half",
    twist="the cache goes with the process, as one inside it would",
    dissent="A restart of the machine instead of the process; other programs that need the memory meanwhile.",
    later="The same today; and the reason why a restarted broker is at full speed at once.",
    code=("kafka2011/log/log.py",),
    tests=("tests/paper/broker/test_broker.py",),
    walk="docs/walks/3-fetch-and-sendfile.md",
)


def experiment(bench: Bench) -> Figures:
    """Restart and read, with and without the cache."""
    bench.plot("how the broker was restarted", "MB read from the disk")
    size = bench.size(8, 64, 256) * MB
    with bench.broker(LAZY_FLUSH) as broker:
        end = fill(broker, "t", size)
        broker.stop()
        if bench.twisted:
            evict(broker.files("t"))
        cached = resident_share(broker.files("t"))
        warm = _read_after_restart(broker, end)
        bench.point("from the disk", "cache left alone", warm / MB)
        broker.stop()
        evict(broker.files("t"))
        cold = _read_after_restart(broker, end)
        bench.point("from the disk", "cache emptied", cold / MB)
    return {
        "log_mb": round(end / MB, 1),
        "cached": round(cached, 3),
        "warm_mb": round(warm / MB, 2),
        "cold_mb": round(cold / MB, 2),
    }


def judge(figures: Figures) -> Judgement:
    """The control shows that the disk can be seen at all."""
    if figures["cold_mb"] < figures["log_mb"] / 2:
        raise CannotTell("the disk is not seen here: an empty cache did not lead to reads that the kernel counts")
    figure = (
        f"{figures['warm_mb']} of {figures['log_mb']} MB came from the disk after a restart ({figures['cached']:.0%} "
        f"of the log was in the page cache), {figures['cold_mb']} MB when the cache was emptied"
    )
    holds = figures["warm_mb"] < 0.05 * figures["log_mb"]
    return Judgement(Verdict.HOLDS if holds else Verdict.FAILS, figure, "one run of each; counts of bytes")


def _read_after_restart(broker: ClaimBroker, end: int) -> int:
    """Bytes that reading the whole log brings from the disk."""
    broker.restart()
    before = meters.io(broker.pid)
    read_all(broker, "t", 0, end)
    return (meters.io(broker.pid) - before).read_bytes
