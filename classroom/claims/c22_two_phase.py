"""§3.3: de-duplication costs less than two-phase commit."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, number_of, numbered, publish
from classroom.claims.harness.nursery import wait_for
from kafka2011.wire import MessageAndOffset, decode_set

CLAIM = Claim(
    number="C22",
    section="3.3",
    title="De-duplication against two-phase commit",
    sentence="it must add its own de-duplication logic, either using the offsets that we return to the consumer "
    "or some unique key within the message. This is usually a more cost-effective approach than using two-phase "
    "commits.",
    experiment="Both are built: a consumer whose ledger holds the offset with each result, and one that commits "
    "ledger and offset store in two phases with a coordinator's log. Both are crashed at every step and must end "
    "with every message once. Then forced writes and time are counted.",
    threshold="both give every message once after every crash, and de-duplication needs at most half of the "
    "forced writes",
    twist="two-phase commit may gather a hundred messages, de-duplication takes them one by one",
    dissent="A store that cannot hold the offset beside the result in one write, as the paper assumes it can: "
    "then there is no cheaper way. Batches matter more than the choice.",
    later="Transactions of Kafka (KIP-98) are a two-phase commit between partitions, paid once for each batch.",
    code=("consumers/dedupe.py",),
    tests=("tests/integration/consumers/test_group.py",),
    walk="docs/walks/7-at-least-once.md",
)

Batch = Sequence[MessageAndOffset]
Step = Callable[[], None]


class Crash(Exception):
    """The consumer died here."""


class Store:
    """A file whose records are on disk before ``force`` returns."""

    def __init__(self, path: Path, step: Step) -> None:
        self.path, self.forced, self._step = path, 0, step

    def force(self, **record: object) -> None:
        """Write one record and wait for the disk. A crash may come before it, or after it."""
        self._step()
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.forced += 1
        self._step()

    def records(self) -> list[dict[str, object]]:
        """Everything that was forced."""
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []


class Deduplicating:
    """Result and next offset in one write: whoever starts again asks the ledger how far it is."""

    def __init__(self, directory: Path, step: Step) -> None:
        self.ledger = Store(directory / "ledger", step)
        self.stores = [self.ledger]

    def begin(self) -> int:
        """Where to go on."""
        return max([int(str(record["next"])) for record in self.ledger.records()], default=0)

    def take(self, batch: Batch) -> None:
        """One forced write."""
        self.ledger.force(results=[number_of(message.payload) for message in batch], next=batch[-1].next_offset)

    def results(self) -> list[int]:
        """What the application has done, in the end."""
        return [n for record in self.ledger.records() for n in record["results"]]  # type: ignore[attr-defined]


class TwoPhase:
    """Ledger and offset store are two; a coordinator's log decides. Presumed abort, as in the books."""

    def __init__(self, directory: Path, step: Step) -> None:
        self.ledger, self.offsets, self.log = (Store(directory / name, step) for name in ("results", "offsets", "log"))
        self.stores = [self.ledger, self.offsets, self.log]

    def begin(self) -> int:
        """Finish what was decided, forget what was not, and say where to go on."""
        decided = {record["id"] for record in self.log.records()}
        for store in (self.ledger, self.offsets):
            known = store.records()
            done = {record["id"] for record in known if record["phase"] == "commit"}
            for record in known:
                if record["phase"] == "prepare" and record["id"] in decided - done:
                    store.force(phase="commit", id=record["id"])
        prepared = {r["id"]: r["next"] for r in self.offsets.records() if r["phase"] == "prepare"}
        return max([int(str(after)) for name, after in prepared.items() if name in decided], default=0)

    def take(self, batch: Batch) -> None:
        """Prepare both, decide, commit both: five forced writes."""
        name = batch[0].offset
        self.ledger.force(phase="prepare", id=name, results=[number_of(message.payload) for message in batch])
        self.offsets.force(phase="prepare", id=name, next=batch[-1].next_offset)
        self.log.force(id=name)
        self.ledger.force(phase="commit", id=name)
        self.offsets.force(phase="commit", id=name)

    def results(self) -> list[int]:
        """Prepared and committed; of a name that was prepared twice the last counts."""
        known = self.ledger.records()
        done = {record["id"] for record in known if record["phase"] == "commit"}
        last = {r["id"]: r["results"] for r in known if r["phase"] == "prepare" and r["id"] in done}
        return [n for results in last.values() for n in results]  # type: ignore[attr-defined]


def experiment(bench: Bench) -> Figures:
    """Crash both everywhere, then weigh both."""
    bench.plot("way", "forced writes for a message")
    count = bench.size(20, 100, 400)
    with bench.broker(LAZY_FLUSH) as broker, broker.connect() as connection:
        end = publish(broker, "t", numbered(count))
        data = wait_for(lambda: found if len(found := connection.fetch("t", 0, 0)) == end else None, "all is flushed")
    messages = decode_set(data)
    ways: dict[str, type[Deduplicating] | type[TwoPhase]] = {
        "de-duplication": Deduplicating, "two-phase commit": TwoPhase
    }  # fmt: skip
    sizes = {name: 100 if bench.twisted and kind is TwoPhase else 1 for name, kind in ways.items()}
    wrong = {name: _crashed_everywhere(bench, kind, messages[:6], sizes[name]) for name, kind in ways.items()}
    weighed: dict[str, dict[str, float]] = {}
    for number in range(3):
        for name, kind in ways.items():
            found = _weigh(bench, kind, messages, sizes[name], number)
            best = weighed.setdefault(name, found)
            best["ms"] = min(best["ms"], found["ms"])
    for name, found in weighed.items():
        bench.point("forced writes", name, found["forced"])
    return {"messages": count, "wrong": wrong, "weighed": weighed}


def judge(figures: Figures) -> Judgement:
    """Equal in what they promise, unequal in price."""
    ours, theirs = (figures["weighed"][name] for name in ("de-duplication", "two-phase commit"))
    figure = (
        f"for a message de-duplication forces {ours['forced']:.2f} writes ({ours['ms']:.2f} ms), two-phase commit "
        f"{theirs['forced']:.2f} ({theirs['ms']:.2f} ms); wrong results after crashes at every step: "
        f"{figures['wrong']['de-duplication']} and {figures['wrong']['two-phase commit']}"
    )
    spread = "writes are counted and decide; the time is the best of three rounds on this disk"
    right = not any(figures["wrong"].values())
    cheaper = 2 * ours["forced"] <= theirs["forced"]
    return Judgement(Verdict.HOLDS if right and cheaper else Verdict.FAILS, figure, spread)


def _drive(consumer: Deduplicating | TwoPhase, messages: Batch, size: int) -> None:
    left = [message for message in messages if message.offset >= consumer.begin()]
    for start in range(0, len(left), size):
        consumer.take(left[start : start + size])


def _crashed_everywhere(
    bench: Bench, kind: type[Deduplicating] | type[TwoPhase], messages: Batch, size: int
) -> int:
    """Crash at the first step, then at the second, and so on; how many runs end with a message missing or twice?"""
    wanted, wrong = [number_of(message.payload) for message in messages], 0
    for at in range(1, 1000):
        directory = bench.directory / f"{kind.__name__}-{at}"
        directory.mkdir()
        left = [at]

        def step(left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Crash

        try:
            _drive(kind(directory, step), messages, size)
        except Crash:
            _drive(kind(directory, lambda: None), messages, size)
            wrong += kind(directory, lambda: None).results() != wanted
        else:
            break
    return wrong


def _weigh(
    bench: Bench, kind: type[Deduplicating] | type[TwoPhase], messages: Batch, size: int, number: int
) -> dict[str, float]:
    directory = bench.directory / f"{kind.__name__}-weighed-{number}"
    directory.mkdir()
    consumer = kind(directory, lambda: None)
    begun = time.perf_counter()
    _drive(consumer, messages, size)
    seconds = time.perf_counter() - begun
    forced = sum(store.forced for store in consumer.stores)
    return {"forced": round(forced / len(messages), 3), "ms": round(1000 * seconds / len(messages), 3)}
