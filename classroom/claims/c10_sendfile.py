"""§3.1: sendfile avoids two copies and a system call."""

from __future__ import annotations

from classroom.claims.claim import CannotTell, Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.calls import count_calls
from classroom.claims.harness.load import LAZY_FLUSH, fill, read_all
from classroom.claims.harness.meters import MB
from classroom.claims.harness.room import ClaimBroker

CLAIM = Claim(
    number="C10",
    section="3.1",
    title="sendfile against four copies",
    sentence="there exists a sendfile API that can directly transfer bytes from a file channel to a socket "
    "channel. This typically avoids 2 of the copies and 1 system call",
    experiment="The same log is fetched from a broker with sendfile and from one that reads into a buffer and "
    "sends that, 64 KB at a time. Their system calls are counted (ptrace), with the bytes each call moves; then "
    "CPU time for a megabyte, in turns.",
    threshold="no byte of a message passes through the broker's own memory, one call moves what took two, and a "
    "megabyte costs at most 0.8 of the CPU",
    twist="sendfile is off",
    dissent="Over TLS the broker must see the bytes, and sendfile cannot be used. On loopback the copy to the "
    "receiver remains; the two copies by DMA that the paper counts are the hardware's and cannot be seen from "
    "here.",
    later="The same; with TLS, kernels can encrypt inside sendfile (kTLS). The modern port sends files the same way.",
    code=("kafka2011/broker/sendfile.py",),
    tests=("tests/paper/broker/test_broker.py", "tests/integration/broker/test_sendfile.py"),
    walk="docs/walks/3-fetch-and-sendfile.md",
)

MOVES = ("pread64", "read", "sendto", "sendmsg", "write")
"""Calls that copy between the kernel and the process."""


def experiment(bench: Bench) -> Figures:
    """Count calls once, then CPU in rounds that take turns."""
    bench.plot("round", "ms of the broker's CPU for a megabyte")
    size, rounds = bench.size(8, 32, 128) * MB, bench.size(5, 7, 11)
    with (
        bench.broker(LAZY_FLUSH, name="ours", altered=["copy"] if bench.twisted else []) as ours,
        bench.broker(LAZY_FLUSH, name="copying", altered=["copy"]) as copying,
    ):
        pair = {"sendfile": ours, "copy": copying}
        ends = {name: fill(broker, "t", size) for name, broker in pair.items()}
        counted = {name: _count(broker, min(ends[name], 4 * MB)) for name, broker in pair.items()}
        costs: dict[str, list[float]] = {name: [] for name in pair}
        for number in range(rounds):
            for name, broker in pair.items():
                before = meters.cpu_s(broker.pid)
                read_all(broker, "t", 0, ends[name], size=1 << 20)
                costs[name].append(1000 * (meters.cpu_s(broker.pid) - before) / (ends[name] / MB))
                bench.point(name, number + 1, costs[name][-1])
    return {
        "calls": counted,
        "cpu_ms_per_mb": {name: [round(one, 4) for one in found] for name, found in costs.items()},
    }


def judge(figures: Figures) -> Judgement:
    """Counts decide, and the CPU must follow them."""
    calls, cpu = figures["calls"], figures["cpu_ms_per_mb"]
    ratio = min(cpu["sendfile"]) / min(cpu["copy"])  # whatever disturbs a round only makes it slower
    if calls["copy"] is None:
        raise CannotTell("system calls cannot be counted here (ptrace is not allowed), so copies cannot either")
    ours, theirs = calls["sendfile"], calls["copy"]
    figure = (
        f"for each byte sent {ours['copied']:.2f} bytes are copied into or out of the process, "
        f"against {theirs['copied']:.2f}; "
        f"{ours['per_64k']:.1f} calls for 64 KB against {theirs['per_64k']:.1f}; "
        f"{ratio:.2f} of the CPU"
    )
    spread = f"ms of CPU for a MB with sendfile: {meters.spread_of(cpu['sendfile'])}"
    saved = ours["copied"] < 0.05 and theirs["copied"] > 1.9 and ours["per_64k"] < 0.75 * theirs["per_64k"]
    if not saved or ratio > 0.95:
        return Judgement(Verdict.FAILS, figure, spread)
    if ratio > 0.8:
        return Judgement(Verdict.UNKNOWN, figure, spread, "the copies are saved, but the CPU does not show it here")
    return Judgement(Verdict.HOLDS, figure, spread)


def _count(broker: ClaimBroker, size: int) -> dict[str, float] | None:
    """Bytes copied for each byte sent, and data-moving calls for each 64 KB; None where calls cannot be counted."""
    try:
        calls = count_calls(broker.pid, lambda: _ignore(read_all(broker, "t", 0, size)))
    except CannotTell:
        return None
    copied = sum(calls.moved[name] for name in MOVES)
    moving = sum(calls.count[name] for name in (*MOVES, "sendfile"))
    return {"copied": round(copied / size, 3), "per_64k": round(moving / (size / (64 << 10)), 2)}


def _ignore(size: int) -> None:
    assert size
