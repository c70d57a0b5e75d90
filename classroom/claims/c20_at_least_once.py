"""§3.3: duplicates only after a crash, only past the last stored offset, and nothing lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, MESSAGE_BYTES, numbered, publish
from kafka2011.types import BrokerPartition
from zk_registry.offsets import OffsetRegistry as Offsets
from zk_registry.session import ZooKeeperSession

CLAIM = Claim(
    number="C20",
    section="3.3",
    title="At least once",
    sentence="the consumer process that takes over those partitions owned by the failed consumer may get some "
    "duplicate messages that are after the last offset successfully committed to zookeeper",
    experiment="Consumers that store their offset after every tenth message die in the middle of a message, as "
    "by kill -9; another process takes over. Ledgers tell what was begun and finished. One kind of consumer "
    "counts a message when it is finished, the other when it is handed out, as Kafka 0.7 did.",
    threshold="no message is left unfinished by everybody, and what comes twice lies after the last stored offset",
    twist="messages count when they are handed out",
    dissent="An application that does its work before it asks for the message's turn, or in another thread: then "
    "only the application knows what is finished.",
    later="enable.auto.commit counts what poll() returned before the last one: the same care is needed. "
    "Transactions store offsets and results together.",
    code=("consumers/stream.py", "consumers/commit.py"),
    tests=("tests/paper/consumers/test_consumer_api.py", "tests/integration/consumers/test_group.py"),
    walk="docs/walks/7-at-least-once.md",
)

EVERY = 10
ENTRY = MESSAGE_BYTES + 10


@dataclass(slots=True)
class _Life:
    """One group: a consumer that dies at some message, and its successor."""

    name: str
    count: str
    die_at: int


def experiment(bench: Bench) -> Figures:
    """Several groups at once, each with a death of its own."""
    bench.plot("the message at which the consumer died", "messages")
    connect, messages, deaths = bench.room.zookeeper(), bench.size(40, 60, 100), bench.size(1, 3, 6)
    moments = [EVERY * (2 + n % 2) + (0 if n % 3 == 0 else bench.random.randrange(1, EVERY)) for n in range(deaths)]
    counting = "handed-out" if bench.twisted else "done"
    lives = [_Life(f"ours-{n}", counting, die_at) for n, die_at in enumerate(moments)]
    lives += [_Life(f"as-in-0.7-{n}", "handed-out", die_at) for n, die_at in enumerate(moments) if die_at % EVERY == 0]
    with bench.broker(LAZY_FLUSH | {"zk.connect": connect}) as broker:
        publish(broker, "t", numbered(messages))
        _run(bench, lives, connect, ["--die-at"])
        stored = _stored(connect, lives)
        _run(bench, lives, connect, ["--idle-s", "4"])
    found = {life.name: _judge_ledger(bench.directory / life.name, messages, stored[life.name]) for life in lives}
    for life in lives:
        kind = life.name.rpartition("-")[0]
        bench.point(f"{kind}: came twice", life.die_at, found[life.name]["twice"])
        bench.point(f"{kind}: lost", life.die_at, found[life.name]["lost"])
    ours = [one for name, one in found.items() if name.startswith("ours")]
    theirs = [one for name, one in found.items() if not name.startswith("ours")]
    return {
        "deaths": len(ours),
        "lost": sum(one["lost"] for one in ours),
        "twice": sum(one["twice"] for one in ours),
        "before_the_offset": sum(one["before"] for one in ours),
        "deaths_as_in_07": len(theirs),
        "lost_as_in_07": sum(one["lost"] for one in theirs),
    }


def judge(figures: Figures) -> Judgement:
    """Nothing lost, nothing twice that was stored."""
    figure = (
        f"{figures['deaths']} consumers died: {figures['twice']} messages came twice, all after the last stored "
        f"offset but {figures['before_the_offset']}; {figures['lost']} were lost"
    )
    spread = f"at most {EVERY} come twice for each death, as many as are between two commits"
    if figures["lost"] or figures["before_the_offset"]:
        return Judgement(Verdict.FAILS, figure, spread)
    if figures["lost_as_in_07"]:
        footnote = (
            f"Counted as Kafka 0.7 did, when a message is handed out, {figures['lost_as_in_07']} message was lost in "
            f"{figures['deaths_as_in_07']} death: the one in the application's hand, whose offset was stored already."
        )
        return Judgement(Verdict.FOOTNOTE, figure, spread, footnote)
    return Judgement(Verdict.HOLDS, figure, spread)


def _run(bench: Bench, lives: list[_Life], connect: str, end: list[str]) -> None:
    """All groups at the same time, until each consumer has ended as told."""
    running = []
    for life in lives:
        words = [str(bench.directory / life.name), connect, life.name, "t", "--count", life.count, "--session-s", "1.5"]
        words += ["--commit-every", str(EVERY), *end, *([str(life.die_at)] if end == ["--die-at"] else [])]
        running.append(bench.room.member(words, bench.directory / f"{life.name}.out"))
    for process in running:
        process.wait(120)


def _stored(connect: str, lives: list[_Life]) -> dict[str, int]:
    """How many messages each group has stored as consumed, from its node in ZooKeeper."""
    with ZooKeeperSession(connect) as session:
        return {
            life.name: (Offsets(session, life.name).read("t", BrokerPartition(0, 0)) or 0) // ENTRY for life in lives
        }


def _judge_ledger(path: Path, messages: int, stored: int) -> dict[str, int]:
    """Lost: finished by nobody. Twice: begun by both. Before: begun by both though its offset was stored."""
    lives: list[dict[str, set[int]]] = []
    for line in path.read_text().splitlines():
        word, *rest = line.split()
        if word == "joined":
            lives.append({"begin": set(), "end": set()})
        elif word in ("begin", "end"):
            lives[-1][word].add(int(rest[0]))
    first, second = lives
    twice = first["begin"] & second["begin"]
    return {
        "lost": messages - len(first["end"] | second["end"]),
        "twice": len(twice),
        "before": sum(number < stored for number in twice),
    }
