"""§5: nine bytes of overhead for each message, and what follows from it."""

from __future__ import annotations

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, end_of, numbered
from classroom.claims.harness.nursery import wait_for
from kafka2011.wire import encode_set

CLAIM = Claim(
    number="C02",
    section="5",
    title="Nine bytes of overhead",
    sentence="On average, each message had an overhead of 9 bytes in Kafka, versus 144 bytes in ActiveMQ. This "
    "means that ActiveMQ was using 70% more space than Kafka",
    experiment="Messages of 200 bytes are published in both formats of 2011 (magic 0, and magic 1 which came "
    "with compression); all files of the broker's partition are measured.",
    threshold="9 bytes a message in one of the formats; a footnote if the other needs more, or if the 70 % is "
    "not what follows",
    twist="the broker keeps an index of 16 bytes a message beside each segment",
    dissent="Files measured with their blocks (a file system rounds up), or with the brokers' other files: a few "
    "kilobytes.",
    later="A record of today's format has 7 bytes and more of its own, and 61 for each batch: "
    "since2011/wire/record_batch.py.",
    code=("kafka2011/wire/message.py",),
    tests=("tests/unit/wire/test_vectors.py",),
    walk="docs/walks/0-one-message.md",
)

PAYLOAD, ACTIVEMQ = 200, 144


def experiment(bench: Bench) -> Figures:
    """Publish in both formats; add up the files."""
    bench.plot("format", "bytes of overhead for a message")
    count = bench.size(2_000, 20_000, 100_000)
    overhead = {}
    with bench.broker(LAZY_FLUSH, altered=["index"] if bench.twisted else []) as broker, broker.connect() as connection:
        for magic in (0, 1):
            topic = f"magic{magic}"
            size = 0
            for first in range(0, count, 500):
                data = encode_set(numbered(500, PAYLOAD, first), magic=magic)
                size += len(data)
                connection.produce(topic, 0, data)
            wait_for(lambda topic=topic, size=size: end_of(broker, topic) == size, "all is appended")
            files = sum(path.stat().st_size for path in (broker.log_dir / f"{topic}-0").iterdir())
            overhead[topic] = files / count - PAYLOAD
            bench.point("bytes", f"magic {magic}", overhead[topic])
    return {"messages": count, **overhead}


def judge(figures: Figures) -> Judgement:
    """The arithmetic of §5, done again."""
    smaller, larger = figures["magic0"], figures["magic1"]
    more = (PAYLOAD + ACTIVEMQ) / (PAYLOAD + smaller) - 1
    count = figures["messages"]
    figure = f"{smaller:.2f} bytes a message (magic 0), {larger:.2f} (magic 1), over {count:,} messages each"
    if smaller != 9:
        return Judgement(Verdict.FAILS, figure)
    footnote = (
        f"With 144 bytes for ActiveMQ's, (200 + 144) / (200 + 9) is {1 + more:.3f}: {more:.0%} more space, not 70 %. "
        "And the format that came with compression has a byte more: 10."
    )
    return Judgement(Verdict.FOOTNOTE, figure, footnote=footnote)
