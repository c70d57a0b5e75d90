"""§3.3: what a dead broker takes with it, and what a dead disk does."""

from __future__ import annotations

import shutil

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, number_of, numbered, publish
from classroom.claims.harness.nursery import wait_for
from classroom.claims.harness.room import ClaimBroker
from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.wire import decode_set

CLAIM = Claim(
    number="C25",
    section="3.3",
    title="A dead broker and a dead disk",
    sentence="If a broker goes down, any message stored on it not yet consumed becomes unavailable. If the "
    "storage system on a broker is permanently damaged, any unconsumed message is lost forever.",
    experiment="Messages on two brokers. One is killed: what can be read? It starts again: what is back? It is "
    "killed and its disk is lost: what is left?",
    threshold="with the broker its messages are away and come back; with the disk they are gone; those of the "
    "other broker are always there",
    twist="a copy of the disk is kept elsewhere and put in its place, as a replica would be",
    dissent="Any form of replication, which the paper names as future work.",
    later="Replication since 0.8: docs/since-2011.md.",
    code=("kafka2011/log/store.py",),
    tests=("tests/integration/broker/test_missing_files.py", "tests/integration/broker/test_life.py"),
    walk="docs/walks/5-four-registries.md",
)


def experiment(bench: Bench) -> Figures:
    """Kill, restart, lose the disk."""
    bench.plot("what happened to the second broker", "messages that can be read")
    each = bench.size(30, 200, 1_000)
    with bench.broker(LAZY_FLUSH, name="one") as one, bench.broker(LAZY_FLUSH, name="two") as two:
        for first, broker in ((0, one), (each, two)):
            end = publish(broker, "t", numbered(each, first=first))
            wait_for(lambda b=broker, e=end: _readable(b, e), "all is flushed")
        readable = {"nothing": _read(one) | _read(two)}
        two.kill()
        readable["killed"] = _read(one) | _read(two)
        two.restart()
        readable["started again"] = _read(one) | _read(two)
        two.kill()
        copy = bench.directory / "copy"
        shutil.copytree(two.log_dir, copy)
        shutil.rmtree(two.log_dir)
        if bench.twisted:
            shutil.copytree(copy, two.log_dir)
        two.restart()
        readable["disk lost"] = _read(one) | _read(two)
    for name, found in readable.items():
        bench.point("can be read", name, len(found))
    return {
        "messages": 2 * each,
        "readable": {name: len(found) for name, found in readable.items()},
        "other_always": all(set(range(each)) <= found for found in readable.values()),
    }


def judge(figures: Figures) -> Judgement:
    """Half away, all back, half gone."""
    readable, n = figures["readable"], figures["messages"]
    figure = (
        f"of {n:,} messages {readable['killed']:,} can be read while one of two brokers is dead, "
        f"{readable['started again']:,} when it is back, {readable['disk lost']:,} after its disk was lost"
    )
    as_said = readable == {"nothing": n, "killed": n // 2, "started again": n, "disk lost": n // 2}
    return Judgement(Verdict.HOLDS if as_said and figures["other_always"] else Verdict.FAILS, figure)


def _readable(broker: ClaimBroker, end: int) -> bool:
    with broker.connect() as connection:
        return connection.offsets("t", 0)[0] == end


def _read(broker: ClaimBroker) -> set[int]:
    """The numbers of all messages that this broker gives out."""
    found: set[int] = set()
    with BrokerConnection(broker.host, broker.port, connect_timeout_s=0.2) as connection:
        try:
            offset = 0
            while data := connection.fetch("t", 0, offset):
                messages = decode_set(data, offset)
                found |= {number_of(message.payload) for message in messages}
                offset = messages[-1].next_offset
        except Kafka2011Error:
            pass  # it is away
    return found
