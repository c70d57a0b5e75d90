"""§3.2: why a partition is not read by several consumers of a group at once."""

from __future__ import annotations

import threading
import time
from collections import Counter

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, MESSAGE_BYTES, numbered, publish
from classroom.claims.harness.nursery import wait_for
from classroom.claims.harness.room import ClaimBroker
from kafka2011.wire import decode_set
from zk_registry.operations import BadVersion, Create, Get, Set
from zk_registry.session import ZooKeeperSession

CLAIM = Claim(
    number="C15",
    section="3.2",
    title="Several readers of one partition",
    sentence="Had we allowed multiple consumers to simultaneously consume a single partition, they would have to "
    "coordinate who consumes what messages, which necessitates locking and state maintenance overhead.",
    experiment="Three readers share one partition without coordination; then with it: each claims the next ten "
    "messages in ZooKeeper (compare and set) before it fetches them. Beside them three readers have a partition "
    "each.",
    threshold="without coordination messages are consumed more than once; with it each once, at the price of "
    "at least one operation on the registry for every ten messages, where readers with a partition each need none",
    twist="each of the three has a partition of its own",
    dissent="Claims of thousands of messages instead of ten: then the lock costs little, and only the order is lost.",
    later="Share groups (KIP-932, 2024) do what the paper refused: the broker keeps the state of every message "
    "in flight.",
    code=("consumers/algorithm1/assign.py",),
    tests=("tests/unit/consumers/test_assign.py",),
    walk="docs/walks/6-algorithm-1.md",
)

READERS, CLAIM_MESSAGES = 3, 10
ENTRY_BYTES = MESSAGE_BYTES + 10
NODE = "/claims/t-0"


def experiment(bench: Bench) -> Figures:
    """Shared without a lock, shared with one, and apart."""
    bench.plot("how three readers read", "registry operations for 1,000 messages")
    count = bench.size(60, 600, 3_000) * READERS
    with bench.broker(LAZY_FLUSH | {"num.partitions": READERS}) as broker:
        payloads, each = numbered(count), count // READERS
        publish(broker, "shared", payloads)
        for partition in range(READERS):
            publish(broker, "apart", payloads[partition * each : (partition + 1) * each], partition=partition)
        wait_for(lambda: _flushed(broker, "apart", READERS - 1) == each * ENTRY_BYTES, "all is flushed")
        wait_for(lambda: _flushed(broker, "shared", 0) == count * ENTRY_BYTES, "all is flushed")
        own: list[int | None] = [None] * READERS
        same: list[int | None] = [0] * READERS
        free = _together(broker, *(("apart", own) if bench.twisted else ("shared", same)), None)
        locked = free if bench.twisted else _together(broker, "shared", same, bench.room.zookeeper())
        apart = _together(broker, "apart", own, None)
    runs = {"one partition, no lock": free, "one partition, lock": locked, "a partition each": apart}
    for name, found in runs.items():
        bench.point("operations", name, 1000 * found.operations / count)
    return {
        "messages": count,
        "consumed_without_lock": sum(free.consumed.values()),
        "consumed_with_lock": sum(locked.consumed.values()),
        "operations_with_lock": locked.operations,
        "conflicts": locked.conflicts,
        "times_as_long": round(locked.seconds / apart.seconds, 2),
    }


def judge(figures: Figures) -> Judgement:
    """Both halves of the sentence: it is necessary, and it costs."""
    n = figures["messages"]
    again = figures["consumed_without_lock"] / n
    figure = (
        f"without coordination each message was consumed {again:.1f} times; with it once, for "
        f"{1000 * figures['operations_with_lock'] / n:.0f} registry operations per 1,000 messages "
        f"({figures['conflicts']} refused) and {figures['times_as_long']:.1f} times the time of a partition each"
    )
    spread = "operations are counted; the time is one run of each and is not judged"
    necessary = again > 1.5 and figures["consumed_with_lock"] == n
    holds = necessary and figures["operations_with_lock"] >= n / CLAIM_MESSAGES
    return Judgement(Verdict.HOLDS if holds else Verdict.FAILS, figure, spread)


class _Run:
    """What a few readers did together."""

    def __init__(self) -> None:
        self.consumed: Counter[bytes] = Counter()
        self.operations = self.conflicts = 0
        self.seconds = 0.0


def _together(broker: ClaimBroker, topic: str, partitions: list[int | None], zookeeper: str | None) -> _Run:
    """Readers in threads; a partition of None means one for each. With a ZooKeeper, each claims before it reads."""
    run, sessions = _Run(), []
    if zookeeper is not None:
        sessions = [ZooKeeperSession(zookeeper) for _ in partitions]
        for session in sessions:
            session.start()
        sessions[0].perform(Create(NODE, b"0", make_parents=True))
    readers = [
        threading.Thread(
            target=_read,
            args=(broker, topic, n if partition is None else partition, run, sessions[n] if sessions else None),
        )
        for n, partition in enumerate(partitions)
    ]
    begun = time.perf_counter()
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    run.seconds = time.perf_counter() - begun
    for session in sessions:
        session.close()
    return run


def _read(broker: ClaimBroker, topic: str, partition: int, run: _Run, session: ZooKeeperSession | None) -> None:
    offset, end, piece = 0, _flushed(broker, topic, partition), CLAIM_MESSAGES * ENTRY_BYTES
    with broker.connect() as connection:
        while offset < end:
            if session is not None:
                offset = _claim(session, piece, run)
                if offset >= end:
                    return
            data = connection.fetch(topic, partition, offset, min(piece, end - offset))
            run.consumed.update(message.payload for message in decode_set(data, offset))
            offset += piece


def _claim(session: ZooKeeperSession, piece: int, run: _Run) -> int:
    """Take the next messages for oneself, as often as it takes."""
    while True:
        node = session.perform(Get(NODE))
        run.operations += 2
        try:
            session.perform(Set(NODE, b"%d" % (int(node.value) + piece), node.version))
            return int(node.value)
        except BadVersion:
            run.conflicts += 1


def _flushed(broker: ClaimBroker, topic: str, partition: int) -> int:
    with broker.connect() as connection:
        return connection.offsets(topic, partition)[0]
