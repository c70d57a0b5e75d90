"""§3.2, Algorithm 1: N = partitions / consumers, read as a whole number."""

from __future__ import annotations

import time
from pathlib import Path

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, numbered, publish
from classroom.claims.harness.nursery import wait_for
from consumers.algorithm1.assign import Rule, ThreadId, fraction, printed
from kafka2011.types import BrokerPartition

CLAIM = Claim(
    number="C28",
    section="3.2",
    title="N as a whole number",
    sentence="let N = |PT|/|CT|; assign partitions from j*N to (j+1)*N - 1 in PT to consumer Ci",
    experiment="The printed rule is computed for all groups of 1 to 7 consumers and topics of 1 to 12 "
    "partitions. Then three real consumers run the algorithm as printed on four partitions, and what they never "
    "read is counted.",
    threshold="every partition is assigned to one consumer, for every shape",
    twist="N is kept as a fraction, and the real consumers share as Kafka 0.7 did",
    dissent="Someone who reads the division as exact and rounds j*N: then every partition has one owner. The "
    "figure does not say so, and code that says |PT|/|CT| in 2011 divides whole numbers.",
    later="The first consumers take one more (0.7, and today's range assignor).",
    code=("consumers/algorithm1/assign.py",),
    tests=("tests/unit/consumers/test_assign.py",),
    walk="docs/walks/6-algorithm-1.md",
)

PARTITIONS, CONSUMERS, EACH = 4, 3, 20


def experiment(bench: Bench) -> Figures:
    """All shapes on paper, one with real consumers."""
    bench.plot("partitions", "partitions nobody reads (of the worst group)")
    rule = fraction if bench.twisted else printed
    unread = {(p, c): _unread(rule, p, c) for p in range(1, 13) for c in range(1, 8)}
    for p in range(1, 13):
        bench.point("nobody reads", p, max(unread[p, c] for c in range(1, 8)))
    never = _real_group(bench, "sound" if bench.twisted else "printed", PARTITIONS - unread[PARTITIONS, CONSUMERS])
    return {
        "shapes": len(unread),
        "incomplete": sum(bool(n) for n in unread.values()),
        "nothing_at_all": sum(unread[p, c] == p for p, c in unread),
        "never_delivered": never,
        "published": PARTITIONS * EACH,
    }


def judge(figures: Figures) -> Judgement:
    """Complete for every shape, or not."""
    figure = (
        f"{figures['incomplete']} of {figures['shapes']} shapes leave partitions unread, "
        f"{figures['nothing_at_all']} leave all; three real consumers of four partitions never read "
        f"{figures['never_delivered']} of {figures['published']} messages"
    )
    if figures["incomplete"] or figures["never_delivered"]:
        footnote = "With N kept exact, or the remainder given to the first consumers as 0.7 did, nothing is left out."
        return Judgement(Verdict.FAILS, figure, footnote=footnote)
    return Judgement(Verdict.HOLDS, figure)


def _unread(rule: Rule, n_partitions: int, n_consumers: int) -> int:
    partitions = [BrokerPartition(0, n) for n in range(n_partitions)]
    threads = [ThreadId(f"c{n}", 0) for n in range(n_consumers)]
    return n_partitions - len({one for me in threads for one in rule(partitions, threads, me)})


def _real_group(bench: Bench, edition: str, expected: int) -> int:
    """Three consumers, four partitions: the messages that none of them is given."""
    connect = bench.room.zookeeper()
    ledgers = [bench.directory / f"ledger-{n}" for n in range(CONSUMERS)]
    with bench.broker(LAZY_FLUSH | {"zk.connect": connect, "num.partitions": PARTITIONS}) as broker:
        members = [
            bench.room.member(
                [str(path), connect, "g", "t", "--edition", edition, "--id", path.name], path.with_suffix(".out")
            )
            for path in ledgers
        ]
        wait_for(lambda: all(path.exists() and "joined" in path.read_text() for path in ledgers), "all have joined")
        for partition in range(PARTITIONS):
            publish(broker, "t", numbered(EACH, first=partition * EACH), partition=partition)
        wait_for(lambda: len(_delivered(ledgers)) >= expected * EACH, f"{expected} partitions are read")
        time.sleep(1.0)  # whoever would read the rest has time to
        for process in members:
            process.kill()
            process.wait()
    return PARTITIONS * EACH - len(_delivered(ledgers))


def _delivered(ledgers: list[Path]) -> set[int]:
    lines = [line.split() for path in ledgers for line in path.read_text().splitlines()]
    return {int(line[1]) for line in lines if line[0] == "begin"}
