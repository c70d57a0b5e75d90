"""§5: how many messages a second."""

from __future__ import annotations

import time

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, numbered, stored
from classroom.claims.harness.nursery import wait_for
from classroom.claims.harness.room import ClaimBroker
from consumers.simple import SimpleConsumer
from kafka2011.producer import Producer

CLAIM = Claim(
    number="C29",
    section="5",
    title="The figures of §5",
    sentence="On average, Kafka can publish messages at the rate of 50,000 and 400,000 messages per second for "
    "batch size of 1 and 50, respectively. … On average, Kafka consumed 22,000 messages per second",
    experiment="One producer and one consumer of this project, messages of 200 bytes, flushing as the paper's "
    "test did (in the background): rates by the clock, and for each second of CPU of client and broker.",
    threshold="each of the three rates is reached for a second of CPU that client and broker use together (so "
    "that a busy machine does not decide); the clock is reported beside it",
    twist="the broker flushes every message before anybody may see it, and every publish waits for that, as the "
    "sample configuration of 2011 has it",
    dissent="The paper's machines: two of 2010 with a network between them. The numbers say nothing about ours "
    "against theirs; that they are reached by Python says how much a core has gained since.",
    later="make bench sets RabbitMQ, ActiveMQ, NATS and Redis beside this on one machine: docs/benchmarks.md.",
    code=("kafka2011/producer/producer.py", "consumers/simple.py"),
    tests=("tests/integration/benchmarks/test_broker_rows.py",),
    walk=None,
)

PAPER = {"publish, batch 1": 50_000, "publish, batch 50": 400_000, "consume": 22_000}


def experiment(bench: Bench) -> Figures:
    """Three rates, in turns, the best round of each."""
    bench.plot("what", "messages a second")
    count, rounds = bench.size(20_000, 100_000, 300_000), bench.size(2, 3, 5)
    if bench.twisted:
        count = 300
    options = LAZY_FLUSH | ({"log.flush.interval": 1, "produce.acks.enable": True} if bench.twisted else {})
    payloads = numbered(count)
    clock: dict[str, list[float]] = {name: [] for name in PAPER}
    cpu: dict[str, list[float]] = {name: [] for name in PAPER}
    with bench.broker(options) as broker:
        for number in range(rounds):
            for name in PAPER:
                topic = f"t{number}-{name[-2:].strip()}"
                before, ours, begun = meters.cpu_s(broker.pid), time.process_time(), time.perf_counter()
                if name == "consume":
                    _consume(broker, f"t{number}-50", count)
                else:
                    _publish(broker, topic, payloads, int(name.split()[-1]), acks=bench.twisted)
                seconds = time.perf_counter() - begun
                used = time.process_time() - ours + meters.cpu_s(broker.pid) - before
                clock[name].append(count / seconds)
                cpu[name].append(count / used)
    for name, paper in PAPER.items():
        bench.point("the paper", name, paper)
        bench.point("here, a second of CPU", name, max(cpu[name]))
        bench.point("here, by the clock", name, max(clock[name]))
    return {
        "messages": count,
        "rate": {name: round(max(found)) for name, found in clock.items()},
        "rate_of_a_core": {name: round(max(found)) for name, found in cpu.items()},
    }


def judge(figures: Figures) -> Judgement:
    """Each against the paper's figure."""
    core, clock = figures["rate_of_a_core"], figures["rate"]
    told = ", ".join(f"{core[name]:,} ({name}; the paper: {paper:,})" for name, paper in PAPER.items())
    figure = f"messages for a second of CPU, client and broker together: {told}"
    spread = "best round; by the clock " + ", ".join(f"{clock[name]:,} ({name})" for name in PAPER)
    reached = all(core[name] >= paper for name, paper in PAPER.items())
    return Judgement(Verdict.HOLDS if reached else Verdict.FAILS, figure, spread)


def _publish(broker: ClaimBroker, topic: str, payloads: list[bytes], batch: int, *, acks: bool) -> None:
    end = sum(10 + len(payload) for payload in payloads)
    with Producer(broker.address, batch_size=batch, sync=acks, acks="flushed" if acks else "none") as producer:
        if acks:
            for start in range(0, len(payloads), batch):
                producer.send(topic, payloads[start : start + batch])
        else:
            for start in range(0, len(payloads), 1000):
                producer.send(topic, payloads[start : start + 1000])
    wait_for(lambda: stored(broker, topic) >= end, "all is appended")


def _consume(broker: ClaimBroker, topic: str, count: int) -> None:
    with SimpleConsumer(broker.host, broker.port) as consumer:
        for seen, _ in enumerate(consumer.messages(topic, 0, 0), 1):
            if seen == count:
                return
