"""§3.2: a new group begins at the smallest or the largest offset."""

from __future__ import annotations

from pathlib import Path

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, MESSAGE_BYTES, numbered, publish
from classroom.claims.harness.nursery import wait_for
from kafka2011.log.segment import segment_name
from kafka2011.wire import encode_set

CLAIM = Claim(
    number="C19",
    section="3.2",
    title="Smallest or largest",
    sentence="the consumers will begin with either the smallest or the largest offset (depending on a "
    "configuration) available on each subscribed partition",
    experiment="A log whose first messages were deleted long ago. A new group of each kind joins; then more is "
    "published. At which offset does each begin?",
    threshold="the one begins at the first offset that is left, the other at the first message published after "
    "it joined",
    twist="the group has been here before, and has offsets stored",
    dissent="A message that is published while the second group is joining may be counted to either side.",
    later="auto.offset.reset=earliest|latest|none, with the same meaning.",
    code=("consumers/fetcher.py",),
    tests=("tests/paper/consumers/test_consumer_api.py",),
    walk="docs/walks/5-four-registries.md",
)

ENTRY = MESSAGE_BYTES + 10
FIRST = 40 * ENTRY
"""Where the log begins: forty messages were deleted."""
LEFT, NEW = 20, 5


def experiment(bench: Bench) -> Figures:
    """Two new groups, one log."""
    bench.plot("the group's setting", "offset of the first message it is given")
    connect = bench.room.zookeeper()
    directory = bench.directory / "broker" / "t-0"
    directory.mkdir(parents=True, mode=0o700)
    (directory / segment_name(FIRST)).write_bytes(encode_set(numbered(LEFT, first=40)))
    with bench.broker(LAZY_FLUSH | {"zk.connect": connect}) as broker:
        if bench.twisted:
            for kind in ("smallest", "largest"):
                _read(bench, connect, "smallest", 3, group=kind)
        begins = {"smallest": _read(bench, connect, "smallest", 1)}
        late = bench.directory / "largest.ledger"
        member = bench.room.member(_words(late, connect, "largest", "largest", 1), bench.directory / "largest.out")
        wait_for(lambda: late.exists() and "joined" in late.read_text(), "the late group has joined")
        publish(broker, "t", numbered(NEW, first=40 + LEFT))
        member.wait(60)
        begins["largest"] = _first(late)
    for kind, offset in begins.items():
        bench.point("begins at", kind, offset)
    return {"begins": begins, "smallest": FIRST, "largest": FIRST + LEFT * ENTRY}


def judge(figures: Figures) -> Judgement:
    """Each where its setting says."""
    begins = figures["begins"]
    figure = (
        f"smallest began at {begins['smallest']:,} (the log begins at {figures['smallest']:,}), largest at "
        f"{begins['largest']:,} (its end was {figures['largest']:,})"
    )
    holds = all(begins[kind] == figures[kind] for kind in ("smallest", "largest"))
    return Judgement(Verdict.HOLDS if holds else Verdict.FAILS, figure)


def _words(ledger: Path, connect: str, group: str, reset: str, stop_at: int) -> list[str]:
    return [str(ledger), connect, group, "t", "--reset", reset, "--stop-at", str(stop_at)]


def _read(bench: Bench, connect: str, reset: str, stop_at: int, group: str = "") -> int:
    """Join, read so many, store the offset, leave; return the offset of the first."""
    ledger = bench.directory / f"{group or reset}-{stop_at}.ledger"
    member = bench.room.member(_words(ledger, connect, group or reset, reset, stop_at), ledger.with_suffix(".out"))
    member.wait(60)
    return _first(ledger)


def _first(ledger: Path) -> int:
    """The offset of the first message in a ledger; its line holds the next one."""
    (line, *_) = [line for line in ledger.read_text().splitlines() if line.startswith("begin")]
    return int(line.split()[2]) - ENTRY
