"""§3.2: one partition, one consumer of a group, at any given time."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import NamedTuple

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, numbered, publish
from classroom.claims.harness.nursery import wait_for
from consumers.sim.runs import verdicts

CLAIM = Claim(
    number="C16",
    section="3.2",
    title="One partition, one consumer",
    sentence="at any given time, all messages from one partition are consumed only by a single consumer within "
    "each consumer group",
    experiment="Two consumers in processes of their own, one partition. The owner is stopped (SIGSTOP) in the "
    "middle of its work, for longer than its ZooKeeper session; the other takes over; the first wakes up and "
    "finishes. Besides, seeded runs of the same code with crashes, joins and departures.",
    threshold="no two consumers are at work on messages of the partition at the same time",
    twist="the owner leaves in order instead of being stopped",
    dissent="Someone who reads the sentence as one about the registry: there is never more than one owner node, "
    "and that holds. A pause shorter than the session does no harm.",
    later="Epochs and fencing: a paused owner's writes are refused (generation of a group, transactional.id). "
    "Its work outside Kafka still cannot be taken back.",
    code=("consumers/algorithm1/rebalance.py", "consumers/algorithm1/worker.py"),
    tests=("tests/integration/consumers/test_group.py", "tests/property/consumers/test_simulation.py"),
    walk="docs/walks/6-algorithm-1.md",
)


class Work(NamedTuple):
    """One consumer at work on one message, by the machine's clock."""

    consumer: str
    number: int
    begin: float
    end: float


def experiment(bench: Bench) -> Figures:
    """Pause an owner past its session."""
    bench.plot("seconds", "number of the message at work on")
    connect, paths = bench.room.zookeeper(), [bench.directory / name for name in ("first", "second")]
    with bench.broker(LAZY_FLUSH | {"zk.connect": connect}) as broker:
        publish(broker, "t", numbered(200))
        common = [connect, "g", "t", "--work-s", "0.05", "--session-s", "1.5"]
        leave = ["--stop-at", "5"] if bench.twisted else []
        first = bench.room.member([str(paths[0]), *common, "--id", "a", *leave], bench.directory / "first.out")
        wait_for(lambda: len(_lines(paths[0], "end")) >= 3, "the first consumer works")
        second = bench.room.member([str(paths[1]), *common, "--id", "b"], bench.directory / "second.out")
        wait_for(lambda: _lines(paths[1], "joined"), "the second consumer has joined")
        if not bench.twisted:
            wait_for(lambda: _at_work(paths[0]), "the first is at work on a message")
            os.kill(first.pid, signal.SIGSTOP)
        wait_for(lambda: len(_lines(paths[1], "end")) >= 5, "the second has taken over")
        if not bench.twisted:
            before = len(_lines(paths[0], "end"))
            os.kill(first.pid, signal.SIGCONT)
            wait_for(lambda: len(_lines(paths[0], "end")) > before, "the first finishes its message")
        for process in (first, second):
            process.kill()
            process.wait()
    work = [one for path in paths for one in _work(path)]
    zero = min(one.begin for one in work)
    for one in work:
        bench.point(one.consumer, round(one.begin - zero, 3), one.number)
    runs = bench.size(10, 60, 300)
    simulated = verdicts("sound", "kills", runs)
    return {
        "overlap_s": round(_overlap(work), 3),
        "twice": len([n for n in {one.number for one in work} if sum(one.number == n for one in work) > 1]),
        "simulated": runs,
        "simulated_doubled": sum(bool(verdict.doubled) for verdict in simulated),
    }


def judge(figures: Figures) -> Judgement:
    """Of the application, not of the registry."""
    runs, doubled = figures["simulated"], figures["simulated_doubled"]
    simulated = f"in {doubled} of {runs} simulated runs with crashes two living consumers read one partition at once"
    if figures["overlap_s"] > 0 or doubled:
        figure = (
            f"two consumers were at work on one partition at the same time for {figures['overlap_s']:.2f} s, "
            f"{figures['twice']} message by both; {simulated}"
        )
        footnote = (
            "In the registry it holds: one owner node, always. The consumer that was stopped cannot know that it "
            "lost its partition, and finishes the message in its hand. Ours asks before it takes the next; 0.7's "
            "went on reading."
        )
        return Judgement(Verdict.FAILS, figure, "one pause; how long they overlap depends on the pause", footnote)
    return Judgement(Verdict.HOLDS, f"never two consumers at work on one partition; {simulated}")


def _lines(path: Path, kind: str) -> list[list[str]]:
    text = path.read_text() if path.exists() else ""
    return [line.split() for line in text.splitlines() if line.startswith(kind)]


def _at_work(path: Path) -> bool:
    return path.exists() and path.read_text().rstrip().rpartition("\n")[2].startswith("begin")


def _work(path: Path) -> list[Work]:
    """From the ledger: each message with its begin, and its end if it came to one."""
    ends = {line[1]: float(line[4]) for line in _lines(path, "end")}
    begun = [line for line in _lines(path, "begin") if line[1] in ends]
    return [Work(path.name, int(line[1]), float(line[4]), ends[line[1]]) for line in begun]


def _overlap(work: list[Work]) -> float:
    """Seconds in which both were at work."""
    first = [one for one in work if one.consumer == "first"]
    second = [one for one in work if one.consumer == "second"]
    return sum(max(0.0, min(a.end, b.end) - max(a.begin, b.begin)) for a in first for b in second)
