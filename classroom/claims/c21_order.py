"""§3.3: order inside a partition, and none across partitions."""

from __future__ import annotations

import threading
from itertools import pairwise

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, MESSAGE_BYTES, number_of, numbered, publish
from classroom.claims.harness.nursery import wait_for
from classroom.claims.harness.room import ClaimBroker
from kafka2011.wire import decode_set

CLAIM = Claim(
    number="C21",
    section="3.3",
    title="Order in a partition",
    sentence="Kafka guarantees that messages from a single partition are delivered to a consumer in order. "
    "However, there is no guarantee on the ordering of messages coming from different partitions.",
    experiment="Numbered messages are published in turns to four partitions, and one consumer of a group reads "
    "them all. How often does a smaller number come after a larger one, inside a partition and across?",
    threshold="never inside a partition, and at least once across partitions",
    twist="two readers take turns with the pieces of each partition",
    dissent="A topic with one partition has one order. A producer that sends again after an error may change the "
    "order before the log (ours does not send again what may have left).",
    later="The same; the idempotent producer keeps the order also when it has to send again.",
    code=("consumers/fetcher.py", "consumers/stream.py"),
    tests=("tests/paper/producer/test_sample.py",),
    walk="docs/walks/5-four-registries.md",
)

PARTITIONS = 4
ENTRY = MESSAGE_BYTES + 10


def experiment(bench: Bench) -> Figures:
    """In turns to four partitions; inversions counted."""
    bench.plot("number of the delivery", "number of the message")
    each = bench.size(40, 400, 2_000)
    connect = "" if bench.twisted else bench.room.zookeeper()
    options = LAZY_FLUSH | {"num.partitions": PARTITIONS} | ({"zk.connect": connect} if connect else {})
    with bench.broker(options) as broker:
        numbers = numbered(each * PARTITIONS)
        for partition in range(PARTITIONS):
            publish(broker, "t", numbers[partition::PARTITIONS], partition=partition)
        delivered = _by_two(broker, each) if bench.twisted else _by_a_consumer(bench, connect, each * PARTITIONS)
    for place in range(0, len(delivered), max(1, len(delivered) // 150)):
        bench.point("delivered", place, delivered[place])
    inside = sum(_inversions([n for n in delivered if n % PARTITIONS == one]) for one in range(PARTITIONS))
    return {"messages": len(delivered), "inside": inside, "across": _inversions(delivered) - inside}


def judge(figures: Figures) -> Judgement:
    """Both sentences."""
    figure = (
        f"of {figures['messages']:,} messages {figures['inside']} came after a later one of their own partition, "
        f"{figures['across']} after a later one of another"
    )
    if figures["inside"] or not figures["across"]:
        return Judgement(Verdict.FAILS, figure, "")
    return Judgement(Verdict.HOLDS, figure, "inside it is exact; across it depends on the fetches of the run")


def _inversions(numbers: list[int]) -> int:
    return sum(a > b for a, b in pairwise(numbers))


def _by_a_consumer(bench: Bench, connect: str, count: int) -> list[int]:
    ledger = bench.directory / "ledger"
    words = [str(ledger), connect, "g", "t", "--stop-at", str(count), "--commit-every", str(count)]
    bench.room.member(words, bench.directory / "member.out").wait(120)
    return [int(line.split()[1]) for line in ledger.read_text().splitlines() if line.startswith("begin")]


def _by_two(broker: ClaimBroker, each: int) -> list[int]:
    """Two readers of every partition: one has the odd pieces, the other the even ones."""
    delivered: list[int] = []
    piece = 10 * ENTRY

    def read(first: int) -> None:
        with broker.connect() as connection:
            for partition in range(PARTITIONS):
                wait_for(lambda p=partition: connection.offsets("t", p)[0] == each * ENTRY, "all is flushed")
                for offset in range(first * piece, each * ENTRY, 2 * piece):
                    data = connection.fetch("t", partition, offset, min(piece, each * ENTRY - offset))
                    delivered.extend(number_of(message.payload) for message in decode_set(data, offset))

    second = threading.Thread(target=read, args=(1,))
    second.start()
    wait_for(lambda: delivered, "the second reader has begun")
    read(0)
    second.join()
    return delivered
