"""See docs/protocol.md, the behaviour table, row by row over a real socket."""

from __future__ import annotations

import struct

import pytest

from kafka2011.testing import BrokerProcess
from kafka2011.wire import (
    Codec,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    crc32,
    encode_set,
)
from tests.integration.broker.client import RawClient
from tests.waiting import until

HELLO = encode_set([b"hello"])  # 15 bytes
ILLEGAL = "a/b"


def topics_of(broker: BrokerProcess) -> set[str]:
    return set(broker.state()["topics"])


def entry(payload: bytes, *, magic: int = 1, attributes: int = 0, crc: int | None = None) -> bytes:
    checksum = crc32(payload) if crc is None else crc
    head = struct.pack(">BBI", magic, attributes, checksum) if magic else struct.pack(">BI", 0, checksum)
    return struct.pack(">i", len(head) + len(payload)) + head + payload


def test_topic_never_seen(broker: BrokerProcess, client: RawClient, topic: str) -> None:
    """Fetch and offsets of an unknown topic answer empty and create nothing; a produce creates it (§3.5, §15.5)."""
    assert client.fetch(topic) == (0, b"")
    assert client.fetch(topic, offset=99) == (0, b"")
    assert [client.offsets(topic, t, 5) for t in (-1, -2, 10**13)] == [[0], [0], []]
    assert topic not in topics_of(broker)
    assert not list(broker.log_dir.glob(f"{topic}-*"))

    client.produce(topic, b"hello")
    client.wait_for(topic, 15)

    assert client.fetch(topic) == (0, HELLO)
    assert topic in topics_of(broker)


def test_partition_in_range_but_never_written(broker: BrokerProcess, client: RawClient, topic: str) -> None:
    """A partition of a known topic is empty until the first produce makes its directory (§3.5)."""
    client.produce(topic, b"hello")
    client.wait_for(topic, 15)

    assert client.fetch(topic, partition=1) == (0, b"")
    assert client.offsets(topic, partition=1) == [0]
    assert not (broker.log_dir / f"{topic}-1").exists()

    client.produce(topic, b"there", partition=1)
    client.wait_for(topic, 15, partition=1)

    assert client.fetch(topic, partition=1) == (0, encode_set([b"there"]))


def test_partition_minus_one(broker: BrokerProcess, client: RawClient, topic: str) -> None:
    """Partition -1: a produce goes to a random partition, a fetch is refused with 3, offsets close (§3.5, §6.2)."""
    for _ in range(64):
        client.produce(topic, b"hello", partition=-1)

    def ends() -> list[int]:
        return [client.offsets(topic, partition=p)[0] for p in (0, 1)]

    until(lambda: sum(ends()) == 64 * 15, "all 64 are flushed")

    assert all(ends())
    assert client.fetch(topic, partition=-1) == (3, b"")
    client.send(OffsetsRequest(topic, -1, -1, 1).encode())
    assert client.is_closed()


@pytest.mark.parametrize("partition", [-2, 2, 2**31 - 1, -(2**31)])
def test_partition_out_of_range(broker: BrokerProcess, topic: str, partition: int) -> None:
    """A partition this broker does not have: produce and offsets close, fetch answers 3 (§3.5)."""
    for frame in (ProduceRequest(topic, partition, HELLO).encode(), OffsetsRequest(topic, partition, -1, 1).encode()):
        with RawClient(broker) as one:
            one.send(frame)
            assert one.is_closed()
    with RawClient(broker) as one:
        assert one.fetch(topic, partition=partition) == (3, b"")
    assert topic not in topics_of(broker)


def test_illegal_topic_name(broker: BrokerProcess) -> None:
    """An illegal topic name: produce and offsets close, fetch answers -1 (§3.5)."""
    for frame in (ProduceRequest(ILLEGAL, 0, HELLO).encode(), OffsetsRequest(ILLEGAL, 0, -1, 1).encode()):
        with RawClient(broker) as one:
            one.send(frame)
            assert one.is_closed()
    with RawClient(broker) as one:
        assert one.fetch(ILLEGAL) == (-1, b"")
        assert one.is_served()


def test_offsets_outside_and_at_the_end(client: RawClient, topic: str) -> None:
    """Outside [first, flushed end] a fetch answers 1, at the end it is empty without an error (§3.5)."""
    client.produce(topic, b"hello", b"there")
    client.wait_for(topic, 30)

    assert [client.fetch(topic, offset) for offset in (-1, 31, 2**63 - 1)] == [(1, b"")] * 3
    assert client.fetch(topic, 30) == (0, b"")


def test_reads_cut_anywhere(client: RawClient, topic: str) -> None:
    """A fetch gives the bytes from the offset on, never more than asked, cut anywhere (§3.5, §15.4)."""
    client.produce(topic, b"hello", b"there")
    client.wait_for(topic, 30)
    both = encode_set([b"hello", b"there"])

    assert client.fetch(topic, 15) == (0, both[15:])
    assert client.fetch(topic, 7) == (0, both[7:])
    assert client.fetch(topic, 0, max_size=10) == (0, both[:10])
    assert client.fetch(topic, 0, max_size=0) == (0, b"")
    assert client.fetch(topic, 0, max_size=2**31 - 1) == (0, both)
    assert client.fetch(topic, 0, max_size=-1) == (-1, b"")


@pytest.mark.parametrize(
    "bad",
    [
        entry(b"x", crc=1),
        entry(b"x", magic=2),
        entry(b"x", attributes=3),
        struct.pack(">iB", 1, 1),
        struct.pack(">iBI", 5, 1, 0),
        struct.pack(">i", -1) + b"xxxxxxx",
        struct.pack(">i", 100) + b"x" * 20,
    ],
    ids=["crc", "magic 2", "codec 3", "N below the header", "magic 1 with N=5", "N negative", "first entry cut"],
)
def test_a_bad_set_closes(broker: BrokerProcess, client: RawClient, topic: str, bad: bytes) -> None:
    """A set with a bad message closes the connection and nothing of that set is written; earlier sets are (§3.5)."""
    last = bad if struct.unpack_from(">i", bad)[0] in (-1, 100) else HELLO + bad
    client.send(*(ProduceRequest(topic, 0, one).encode() for one in (HELLO, HELLO, HELLO, last, HELLO)))

    assert client.is_closed()
    with RawClient(broker) as other:
        other.wait_for(topic, 45)
        other.produce(topic, b"later")
        other.wait_for(topic, 60)
        assert other.fetch(topic) == (0, HELLO * 3 + encode_set([b"later"]))


def test_a_payload_too_large_is_dropped_and_the_connection_stays(
    broker: BrokerProcess, client: RawClient, topic: str
) -> None:
    """Over max.message.size the whole set is dropped and counted; later requests go on (§3.5, §15.1)."""
    before = broker.state()["counters"]["dropped_sets"].get("too_large", 0)
    large = encode_set([b"small", b"x" * 1001])
    sub = [ProduceRequest(topic, 0, large), ProduceRequest(topic, 1, HELLO)]
    client.send(MultiProduceRequest(tuple(sub)).encode(), sub[0].encode())
    client.produce(topic, b"x" * 1000)
    client.wait_for(topic, 1010)

    assert client.fetch(topic) == (0, encode_set([b"x" * 1000]))
    assert client.fetch(topic, partition=1) == (0, HELLO)
    assert broker.state()["counters"]["dropped_sets"]["too_large"] == before + 2


@pytest.mark.parametrize("tail", [HELLO[:1], HELLO[:4], HELLO[:14], struct.pack(">i", 2**31 - 1), b"\x00\x00\x01"])
def test_a_later_entry_cut_short_is_dropped(client: RawClient, topic: str, tail: bytes) -> None:
    """The good prefix is appended, the cut tail dropped, also when the next request follows in the same read (§3.5)."""
    client.send(
        ProduceRequest(topic, 0, HELLO).encode(),
        ProduceRequest(topic, 0, HELLO + tail).encode(),
        ProduceRequest(topic, 0, HELLO).encode(),
    )
    client.wait_for(topic, 45)

    assert client.fetch(topic) == (0, HELLO * 3)
    assert client.offsets(topic) == [45]


def test_an_empty_set_creates_the_topic(broker: BrokerProcess, client: RawClient, topic: str) -> None:
    """An empty set creates log and topic and writes nothing (§3.5)."""
    client.send(ProduceRequest(topic, 0, b"").encode())

    until(lambda: topic in topics_of(broker), "the topic is there")
    assert client.offsets(topic) == [0]
    assert client.fetch(topic) == (0, b"")


def test_counts_that_promise_more_than_is_there(broker: BrokerProcess, topic: str) -> None:
    """Sizes and counts that overrun the frame, and negative ones, close (§3.5)."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    bodies = [
        struct.pack(">h", 0) + name + struct.pack(">ii", 0, 16) + HELLO,
        struct.pack(">h", 0) + name + struct.pack(">ii", 0, -1) + HELLO,
        struct.pack(">hh", 2, -1),
        struct.pack(">hh", 3, -1),
        struct.pack(">hh", 2, 2) + name + struct.pack(">iqi", 0, 0, 10),
        struct.pack(">hh", 3, 2) + name + struct.pack(">ii", 0, 15) + HELLO,
        struct.pack(">h", 4) + name + struct.pack(">iqi", 0, -1, -1),
    ]
    for body in bodies:
        with RawClient(broker) as one:
            one.send(struct.pack(">i", len(body)) + body)
            assert one.is_closed(), body.hex()
    assert topic not in topics_of(broker)


def test_max_offsets_zero_and_count_zero(client: RawClient, topic: str) -> None:
    """No offsets wanted gives none; an empty multi-fetch has an empty reply, an empty multi-produce none (§3.5)."""
    assert client.offsets(topic, -1, 0) == []
    client.send(MultiProduceRequest(()).encode(), MultiFetchRequest(()).encode())
    assert client.receive(6) == bytes.fromhex("000000020000")
    assert client.is_served()


def test_multifetch_keeps_errors_apart(client: RawClient, topic: str) -> None:
    """In a multi-fetch each partition has its own error; the order is kept (§3.5, PrimitiveApi)."""
    client.produce(topic, b"hello")
    client.wait_for(topic, 15)
    fetches = (
        FetchRequest(topic, 0, -1, 100),
        FetchRequest(topic, 0, 0, 100),
        FetchRequest(topic, -1, 0, 100),
        FetchRequest(ILLEGAL, 0, 0, 100),
        FetchRequest(topic + "-unknown", 0, 0, 100),
        FetchRequest(topic, 0, 0, 4),
    )

    reply = client.ask(MultiFetchRequest(fetches).encode())

    parts = [(1, b""), (0, HELLO), (3, b""), (-1, b""), (0, b""), (0, HELLO[:4])]
    assert reply == struct.pack(">h", 0) + b"".join(struct.pack(">ih", 2 + len(d), c) + d for c, d in parts)


def test_multiproduce_is_applied_in_order(broker: BrokerProcess, client: RawClient, topic: str) -> None:
    """Not atomic: a bad sub-request closes, leaves the earlier ones applied and discards the rest (§3.5)."""
    sub = (
        ProduceRequest(topic, 0, HELLO),
        ProduceRequest(topic, 0, encode_set([b"there"])),
        ProduceRequest(topic, 7, HELLO),
        ProduceRequest(topic, 1, HELLO),
    )
    client.send(MultiProduceRequest(sub).encode())

    assert client.is_closed()
    with RawClient(broker) as other:
        other.wait_for(topic, 30)
        assert other.fetch(topic) == (0, encode_set([b"hello", b"there"]))
        assert other.offsets(topic, partition=1) == [0]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY])
def test_bytes_out_are_bytes_in(client: RawClient, topic: str, codec: Codec) -> None:
    """Both magics and wrappers come back exactly as they were sent (§15.2)."""
    data = encode_set([b"a", b"b" * 300], codec=codec) + encode_set([b"old"], magic=0)
    client.send(ProduceRequest(topic, 0, data).encode())
    client.wait_for(topic, len(data))

    assert client.fetch(topic) == (0, data)


def test_replies_come_in_order_under_pipelining(client: RawClient, topic: str) -> None:
    """Requests sent without waiting are answered one by one in their order; produces leave no trace (§3.1)."""
    client.produce(topic, b"hello")
    client.wait_for(topic, 15)
    frames: list[bytes] = []
    expected = b""
    for k in range(300):
        frames.append(ProduceRequest(topic, 1, HELLO).encode())
        frames.append(FetchRequest(topic, 0, k % 17, 1000).encode())
        data = HELLO[k % 17 :]
        code = 0 if k % 17 <= 15 else 1
        expected += struct.pack(">ih", 2 + len(data), code) + data
        frames.append(OffsetsRequest(topic, 0, -2, 1).encode())
        expected += struct.pack(">ihiq", 14, 0, 1, 0)
    client.send(*frames)

    assert client.receive(len(expected)) == expected
    client.wait_for(topic, 300 * 15, partition=1)
    assert client.is_served()


def test_unknown_requests_and_sizes_close(broker: BrokerProcess) -> None:
    """Any other key, and a size outside 2 … max.socket.request.bytes, closes; one byte less is served (§3.2, §3.6)."""
    for key in (-1, 5, 99, 32767):
        with RawClient(broker) as one:
            one.send(struct.pack(">ih", 2, key))
            assert one.is_closed()
    limit = 1 << 20
    with RawClient(broker) as one:
        one.send(struct.pack(">i", limit + 1))
        assert one.is_closed()
    with RawClient(broker) as one:
        frame = OffsetsRequest("nobody", 0, -2, 1).encode()[4:]
        one.send(struct.pack(">i", limit) + frame + bytes(limit - len(frame)))
        assert one.reply() == struct.pack(">hiq", 0, 1, 0)


def test_what_came_before_a_bad_frame_is_done(broker: BrokerProcess, client: RawClient, topic: str) -> None:
    """Requests sent before a bad one in the same packet are run and answered before the connection closes (§3.1)."""
    client.send(
        ProduceRequest(topic, 0, HELLO).encode(),
        OffsetsRequest(topic, 1, -2, 1).encode(),
        struct.pack(">i", -5),
    )

    assert client.reply() == struct.pack(">hiq", 0, 1, 0)
    assert client.is_closed()
    with RawClient(broker) as other:
        other.wait_for(topic, 15)
