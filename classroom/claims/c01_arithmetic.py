"""§3.1: a message is found by adding lengths; there is no index."""

from __future__ import annotations

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, lengths, publish
from classroom.claims.harness.nursery import wait_for
from kafka2011.client import BrokerConnection
from kafka2011.errors import WireError
from kafka2011.wire import Codec, decode_set, encode_set

CLAIM = Claim(
    number="C01",
    section="3.1",
    title="Found by arithmetic",
    sentence="To compute the id of the next message, we have to add the length of the current message to its id.",
    experiment="Messages of many sizes are published to a log of many segments. A reader that only adds lengths "
    "asks for one after the other, and jumps to some at random; another asks in the middle of messages; a third "
    "reads a compressed set.",
    threshold="every message is found at the computed id by one fetch, and ids grow; a footnote where a message "
    "has no id",
    twist="the reader takes ids to be consecutive, as today's are, and there is no index",
    dissent="Someone who counts ids that only the writer can compute as a cost: a reader that has lost its place "
    "cannot find it again inside a segment.",
    later="Since 0.8 ids are dense and a sparse index per segment finds the position: since2011/log/indexes.py.",
    code=("kafka2011/wire/reading.py", "consumers/simple.py"),
    tests=("tests/paper/broker/test_broker.py", "tests/paper/log/test_simple_storage.py"),
    walk="docs/walks/0-one-message.md",
)


def experiment(bench: Bench) -> Figures:
    """Walk, jump, ask in the middle, and read a compressed set."""
    bench.plot("number of the message", "its id")
    payloads = [bench.random.randbytes(n) for n in lengths(bench.random, bench.size(60, 500, 3000))]
    with bench.broker(LAZY_FLUSH | {"log.file.size": 20_000}) as broker, broker.connect() as connection:
        end = publish(broker, "t", payloads, batch=20)
        wait_for(lambda: connection.offsets("t", 0)[0] == end, "all is flushed")
        starts, found = [0], 0
        for number, payload in enumerate(payloads):
            offset = number if bench.twisted else starts[-1]
            found += _at(connection, offset) == payload
            starts.append(starts[-1] + 10 + len(payload))
            if number % max(1, len(payloads) // 60) == 0:
                bench.point("id", number, offset)
        jumps = [bench.random.randrange(len(payloads)) for _ in range(bench.size(10, 100, 500))]
        jumped = sum(_at(connection, n if bench.twisted else starts[n]) == payloads[n] for n in jumps)
        middles = [starts[n] + bench.random.randrange(1, 10 + len(payloads[n])) for n in jumps]
        mistaken = sum(_at(connection, offset) is not None for offset in middles)
        compressed = _ids_of_a_compressed_set(connection)
    return {
        "messages": len(payloads),
        "found": found,
        "jumps": len(jumps),
        "jumped": jumped,
        "middles": len(middles),
        "mistaken": mistaken,
        "compressed_messages": 50,
        "compressed_ids": compressed,
    }


def judge(figures: Figures) -> Judgement:
    """All found by addition; messages of a compressed set share an id, which the sentence does not foresee."""
    n, found = figures["messages"] + figures["jumps"], figures["found"] + figures["jumped"]
    figure = (
        f"{found:,} of {n:,} messages found by one addition and one fetch each; "
        f"{figures['mistaken']} of {figures['middles']} fetches into the middle of a message took it for another one"
    )
    if found < n or figures["mistaken"]:
        return Judgement(Verdict.FAILS, figure)
    if figures["compressed_ids"] < figures["compressed_messages"]:
        footnote = (
            f"{figures['compressed_messages']} messages that were sent compressed have {figures['compressed_ids']} id: "
            "the set's. And an id in the middle of a message gives an error, never the next message: without an index "
            "a reader that lost its place has to start at the beginning of a segment."
        )
        return Judgement(Verdict.FOOTNOTE, figure, footnote=footnote)
    return Judgement(Verdict.HOLDS, figure)


def _at(connection: BrokerConnection, offset: int) -> bytes | None:
    """The message at ``offset``, if one begins there."""
    try:
        return decode_set(connection.fetch("t", 0, offset, 40_000), offset)[0].payload
    except (WireError, IndexError):
        return None


def _ids_of_a_compressed_set(connection: BrokerConnection) -> int:
    data = encode_set([b"message %d" % n for n in range(50)], codec=Codec.GZIP)
    connection.produce("compressed", 0, data)
    found = wait_for(lambda: connection.fetch("compressed", 0, 0), "the compressed set is flushed")
    return len({message.offset for message in decode_set(found)})
