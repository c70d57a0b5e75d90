"""§3.2: many more partitions than consumers balance the load."""

from __future__ import annotations

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, MESSAGE_BYTES
from classroom.claims.harness.nursery import wait_for
from classroom.claims.harness.room import ClaimBroker
from consumers.algorithm1.assign import ThreadId, shipped
from kafka2011.producer import Producer, StaticRouter
from kafka2011.types import BrokerAddress, BrokerPartition

CLAIM = Claim(
    number="C18",
    section="3.2",
    title="Over-partitioning",
    sentence="In order for the load to be truly balanced, we require many more partitions in a topic than the "
    "consumers in each group. We can easily achieve this by over partitioning a topic.",
    experiment="Messages with many different keys are published to topics of 3 to 60 partitions; how many each "
    "of three consumers would get follows from Algorithm 1. Then the same with one key in every three messages.",
    threshold="with 19 partitions for each consumer the busiest has at most 1.2 times the mean, and clearly more "
    "with few partitions; what a frequent key does is a footnote",
    twist="one key stands in every second message",
    dissent="Keys that are few, or as uneven as real ones: no number of partitions can divide a key.",
    later="The same advice today, and the same problem of hot keys; partitioners that add salt to a key give up "
    "its order.",
    code=("consumers/algorithm1/assign.py", "kafka2011/producer/partitioner.py"),
    tests=("tests/unit/consumers/test_assign.py",),
    walk="docs/walks/6-algorithm-1.md",
)

CONSUMERS = 3
PARTITIONS = (3, 4, 15, 57)
UNLUCKY = 60
"""31 times 31 is one more than 16 times 60, and 31 is the factor of Java's string hash."""


def experiment(bench: Bench) -> Figures:
    """Publish with keys, share by Algorithm 1, weigh."""
    bench.plot("partitions for each consumer", "load of the busiest consumer / mean")
    count = bench.size(2_000, 8_000, 40_000)
    loads: dict[str, dict[str, float]] = {"even": {}, "hot": {}}
    counts = {f"{name}{n}": n for name in loads for n in (*PARTITIONS, UNLUCKY)}
    with bench.broker(LAZY_FLUSH | {"topic.partition.count.map": counts}) as broker:
        for name, found in loads.items():
            share = 0.5 if bench.twisted else {"even": 0.0, "hot": 1 / 3}[name]
            for n in PARTITIONS if name == "hot" else (*PARTITIONS, UNLUCKY):
                sizes = _publish(bench, broker, f"{name}{n}", n, count, share)
                found[str(n)] = round(_busiest(sizes) / (sum(sizes) / CONSUMERS), 3)
                bench.point({"even": "many keys", "hot": "a hot key"}[name], n / CONSUMERS, found[str(n)])
    return {"messages": count, "loads": loads}


def judge(figures: Figures) -> Judgement:
    """The busiest consumer against the mean."""
    even, hot = figures["loads"]["even"], figures["loads"]["hot"]
    figure = (
        f"the busiest of three consumers has {even['57']:.2f} times the mean with 57 partitions, "
        f"{even['4']:.2f} with 4, {even['3']:.2f} with 3"
    )
    if even["57"] > 1.2 or even["4"] < even["57"]:
        return Judgement(Verdict.FAILS, figure, "keys from a fixed seed")
    footnote = (
        f"With a third of all messages under one key it has {hot['57']:.2f} times the mean, however many "
        f"partitions there are: a key lives in one partition. And {even[str(UNLUCKY)]:.2f} times with {UNLUCKY} "
        "partitions, where the hash of 0.7 (Java's, of strings) puts keys that end in numbers together, since 31 × "
        "31 leaves 1 when divided by 60."
    )
    return Judgement(Verdict.FOOTNOTE, figure, "keys from a fixed seed", footnote)


def _publish(bench: Bench, broker: ClaimBroker, topic: str, n: int, count: int, hot: float) -> list[int]:
    """Publish with keys; the bytes of each partition then."""
    router = StaticRouter([BrokerAddress(0, broker.host, broker.port)], partitions=range(n))
    with Producer(router) as producer:
        for number in range(count):
            key = b"hot" if bench.random.random() < hot else b"member-%d" % bench.random.randrange(100_000)
            producer.send(topic, b"%0*d" % (MESSAGE_BYTES, number), key=key)
    total = count * (MESSAGE_BYTES + 10)

    def sizes() -> list[int]:
        return [sum(path.stat().st_size for path in broker.files(topic, k)) for k in range(n)]

    wait_for(lambda: sum(sizes()) >= total, f"{topic} is appended")
    return sizes()


def _busiest(sizes: list[int]) -> int:
    """The bytes of the consumer with most, as Algorithm 1 shares the partitions out."""
    partitions = [BrokerPartition(0, k) for k in range(len(sizes))]
    threads = [ThreadId(f"c{n}", 0) for n in range(CONSUMERS)]
    return max(sum(sizes[one.partition] for one in shipped(partitions, threads, me)) for me in threads)
