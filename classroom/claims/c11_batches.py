"""§5: batches amortise what a request costs."""

from __future__ import annotations

import time

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, numbered, stored
from classroom.claims.harness.nursery import wait_for
from classroom.claims.harness.room import ClaimBroker
from kafka2011.wire import ProduceRequest, encode_set

CLAIM = Claim(
    number="C11",
    section="5",
    title="Batches of fifty",
    sentence="In Kafka, a batch size of 50 messages improved the throughput by almost an order of magnitude.",
    experiment="The same messages of 200 bytes are published with 1, 10, 50 and 200 in a request, a system call "
    "for each request, in turns. CPU time of producer and broker together is taken, and the rate.",
    threshold="one in a request costs at least 3.2 times the CPU of one among 50, which is half an order of "
    "magnitude; a footnote from 2 to there and above 20",
    twist="the batch of 50 travels as 50 requests",
    dissent="A producer that gathers requests before it writes them (ours does, by linger_ms) hides most of the "
    "difference: the gain is in system calls and packets first. Messages much larger than 200 bytes gain little.",
    later="Batches became the unit of storage and compression (record batches, linger.ms).",
    code=("kafka2011/producer/batch.py", "kafka2011/broker/intake.py"),
    tests=("tests/paper/producer/test_sample.py",),
    walk=None,
)

HALF_AN_ORDER = 10**0.5


def experiment(bench: Bench) -> Figures:
    """The same messages in requests of several sizes."""
    bench.plot("messages in a request", "messages for each second of CPU", log=True)
    count, rounds = bench.size(2_000, 10_000, 40_000), bench.size(3, 5, 7)
    payloads = numbered(count)
    costs: dict[int, list[float]] = {1: [], 10: [], 50: [], 200: []}
    rates: dict[int, list[float]] = {batch: [] for batch in costs}
    with bench.broker(LAZY_FLUSH) as broker:
        for number in range(rounds):
            for batch, found in costs.items():
                real = 1 if bench.twisted and batch == 50 else batch
                cost, rate = _publish(broker, f"b{batch}-{number}", payloads, real)
                found.append(cost / count)
                rates[batch].append(rate)
    for batch, found in costs.items():
        bench.point("a core", batch, 1 / min(found))
        bench.point("by the clock", batch, max(rates[batch]))
    return {
        "messages": count,
        "microseconds": {str(batch): round(1e6 * min(found), 2) for batch, found in costs.items()},
        "ratios": [round(one / fifty, 2) for one, fifty in zip(costs[1], costs[50], strict=True)],
        "rate": {str(batch): round(max(found)) for batch, found in rates.items()},
    }


def judge(figures: Figures) -> Judgement:
    """CPU for a message, one in a request against fifty."""
    cost, rate = figures["microseconds"], figures["rate"]
    ratio = cost["1"] / cost["50"]
    figure = (
        f"a message alone costs {ratio:.1f} times the CPU of one in a batch of 50 ({cost['1']} and {cost['50']} µs); "
        f"by the clock {rate['1']:,} and {rate['50']:,} messages a second"
    )
    spread = f"ratio of each round: {meters.spread_of(figures['ratios'])}; the best round of each counts"
    if ratio < 2:
        return Judgement(Verdict.FAILS, figure, spread)
    if ratio < HALF_AN_ORDER:
        return Judgement(Verdict.FOOTNOTE, figure, spread, "Less than half an order of magnitude, in a short run.")
    if ratio > 20:
        return Judgement(Verdict.FOOTNOTE, figure, spread, "More than the order of magnitude of the paper.")
    return Judgement(Verdict.HOLDS, figure, spread)


def _publish(broker: ClaimBroker, topic: str, payloads: list[bytes], batch: int) -> tuple[float, float]:
    """CPU seconds of both sides, and messages a second, until the broker has all of them."""
    requests = [
        ProduceRequest(topic, 0, encode_set(payloads[n : n + batch])).encode() for n in range(0, len(payloads), batch)
    ]
    end = sum(10 + len(payload) for payload in payloads)
    with broker.connect() as connection:
        connection.offsets("warm", 0)
        socket = connection._socket
        assert socket is not None
        ours, theirs, begun = time.thread_time(), meters.cpu_s(broker.pid), time.perf_counter()
        for request in requests:
            socket.sendall(request)
        sent = time.thread_time() - ours
        wait_for(lambda: stored(broker, topic) >= end, "all is appended")
        seconds = time.perf_counter() - begun
        return sent + meters.cpu_s(broker.pid) - theirs, len(payloads) / seconds
