"""A fetcher against a broker in memory: what it asks for, hands on, waits for and refuses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from consumers.events import FetcherBack, FetcherWaiting, OffsetReset, PartitionStuck
from consumers.fetcher import FetchedChunk, Fetcher, PoisonMessage
from kafka2011.client import BrokerConnection
from kafka2011.errors import (
    ConnectionFailed,
    Kafka2011Error,
    MessageTooLarge,
    OffsetOutOfRange,
    UnknownError,
    WrongPartition,
)
from kafka2011.events import Event, Journal
from kafka2011.types import BrokerAddress, TopicPartition
from kafka2011.wire import EARLIEST, Codec, FetchRequest, encode_set
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("walker")

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Memory(BrokerConnection):
    """A broker's answers, from bytes in memory."""

    def __init__(self) -> None:
        super().__init__("nowhere", 1)
        self.logs: dict[TopicPartition, bytes] = {P0: b"", P1: b""}
        self.first: dict[TopicPartition, int] = {}
        self.dead = False
        self.offline = False
        """Whether P0 is."""
        self.asked: list[Sequence[FetchRequest]] = []
        self.ahead: list[Sequence[FetchRequest]] = []

    def multifetch(self, fetches: Sequence[FetchRequest]) -> list[memoryview | Kafka2011Error]:
        if self.dead:
            raise ConnectionFailed("gone")
        self.asked.append(fetches)
        return [self._answer(fetch) for fetch in fetches]

    def multifetch_ahead(self, fetches: Sequence[FetchRequest]) -> None:
        self.ahead.append(fetches)

    def _answer(self, fetch: FetchRequest) -> memoryview | Kafka2011Error:
        source = TopicPartition(fetch.topic, fetch.partition)
        if source not in self.logs:
            return WrongPartition("not here yet")
        if self.offline and source == P0:
            return UnknownError("offline")
        first, data = self.first.get(source, 0), self.logs[source]
        if not first <= fetch.offset <= first + len(data):
            return OffsetOutOfRange(fetch.offset, first, first + len(data))
        at = fetch.offset - first
        return memoryview(data[at : at + fetch.max_size])

    def offsets(self, topic: str, partition: int, time_ms: int = -1, max_offsets: int = 1) -> list[int]:
        if self.dead:
            raise ConnectionFailed("gone")
        source = TopicPartition(topic, partition)
        if self.offline and source == P0:
            raise UnknownError("offline")
        first = self.first.get(source, 0)
        return [first if time_ms == EARLIEST else first + len(self.logs[source])]


class Bench:
    """A fetcher, its broker, and what came out."""

    def __init__(self, **options: object) -> None:
        self.broker = Memory()
        self.chunks: list[FetchedChunk] = []
        self.errors: list[tuple[TopicPartition, Kafka2011Error]] = []
        self.journal = Journal()
        self.fetcher = Fetcher(
            BrokerAddress(0, "nowhere", 1),
            deliver=self.chunks.append,
            on_error=lambda source, error: self.errors.append((source, error)),
            journal=self.journal,
            connect=lambda host, port: self.broker,
            **options,  # type: ignore[arg-type]
        )

    def payloads(self, source: TopicPartition = P0) -> list[bytes]:
        return [m.payload for chunk in list(self.chunks) if chunk.source == source for m in chunk.messages]

    def events(self, kind: type[Event]) -> list[Event]:
        return [entry.event for entry in self.journal.since() if isinstance(entry.event, kind)]


@pytest.fixture
def bench() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**options: object) -> Bench:
        made.append(Bench(**options))
        return made[-1]

    yield make
    for one in made:
        one.fetcher.stop()


def test_what_follows_is_asked_for_before_a_chunk_is_handed_on(bench: Callable[..., Bench]) -> None:
    """The broker sends while the application reads (§3.1; issue 23, point 2)."""
    one = bench(fetch_size=64)
    seen: list[Sequence[FetchRequest]] = []
    one.fetcher._deliver = lambda chunk: (seen.extend(one.broker.ahead[-1:]), one.chunks.append(chunk))  # type: ignore[assignment,func-returns-value]
    one.broker.logs[P0] = encode_set([b"%03d" % i for i in range(20)])
    one.fetcher.add({P0: 0})
    until(lambda: len(one.payloads()) == 20, "all messages")
    assert [fetches[0].offset for fetches in seen] == [chunk.next_offset for chunk in one.chunks]
    # And just that is what the next round asks for.
    until(lambda: len(one.broker.asked) > len(seen), "one more round")
    assert [list(fetches) for fetches in one.broker.asked[1 : len(seen) + 1]] == [list(fetches) for fetches in seen]


def test_chunks_are_contiguous_and_growth_is_followed(bench: Callable[..., Bench]) -> None:
    """Each chunk begins where the last ended; what is published later follows (§3.1)."""
    one = bench(fetch_size=64)
    one.broker.logs[P0] = encode_set([b"%03d" % i for i in range(50)])
    one.fetcher.add({P0: 0})
    until(lambda: len(one.payloads()) == 50, "fifty messages")
    one.broker.logs[P0] += encode_set([b"late"])
    until(lambda: len(one.payloads()) == 51, "the late one")

    assert one.payloads() == [*(b"%03d" % i for i in range(50)), b"late"]
    ends = [chunk.next_offset for chunk in one.chunks]
    assert [chunk.offset for chunk in one.chunks] == [0, *ends[:-1]]


def test_one_request_serves_all_partitions(bench: Callable[..., Bench]) -> None:
    """Every owned partition of a broker is asked for in one MULTIFETCH, each with a share of the size.

    See docs/consumer.md.
    """
    one = bench(fetch_size=1 << 20)
    one.fetcher.add({P0: 0, P1: 0})
    until(lambda: any(len(fetches) == 2 for fetches in one.broker.asked), "both in one request")
    both = next(fetches for fetches in one.broker.asked if len(fetches) == 2)
    assert {fetch.max_size for fetch in both} == {1 << 19}


def test_a_message_larger_than_the_fetch_grows_the_fetch(bench: Callable[..., Bench]) -> None:
    """0.7 stalled for ever on a message larger than the fetch size; here the fetch grows (docs/consumer.md)."""
    one = bench(fetch_size=100)
    one.broker.logs[P0] = encode_set([b"small", b"x" * 5000, b"after"])
    one.fetcher.add({P0: 0})
    until(lambda: len(one.payloads()) == 3, "all three")
    assert one.payloads()[2] == b"after"
    until(lambda: one.broker.asked[-1][0].max_size == 100, "the fetch is small again")


def test_a_message_beyond_the_limit_is_named(bench: Callable[..., Bench]) -> None:
    """A message larger than the largest fetch is an error naming offset and size, not a silent stall."""
    one = bench(fetch_size=100, max_fetch_size=1000)
    one.broker.logs[P0] = encode_set([b"ok", b"x" * 5000])
    one.fetcher.add({P0: 0})
    until(lambda: one.errors, "the error")
    source, error = one.errors[0]
    assert source == P0 and isinstance(error, MessageTooLarge)
    assert "offset 12 " in str(error) and "5010 bytes" in str(error)
    assert one.payloads() == [b"ok"]


def test_a_poison_message_is_told_with_its_offset_after_the_good_ones(bench: Callable[..., Bench]) -> None:
    """A bad CRC surfaces at its offset, the good messages before it are delivered, and a seek skips it (§3.3)."""
    one = bench()
    good, bad, after = encode_set([b"good"]), bytearray(encode_set([b"bad!"])), encode_set([b"after"])
    bad[-1] ^= 1
    one.broker.logs[P0] = good + bytes(bad) + after
    one.fetcher.add({P0: 0})
    until(lambda: one.errors, "the error")
    error = one.errors[0][1]
    assert isinstance(error, PoisonMessage)
    assert (error.offset, error.next_offset) == (len(good), len(good) + len(bad))
    assert one.payloads() == [b"good"]
    assert one.events(PartitionStuck)

    assert error.next_offset is not None
    one.fetcher.add({P0: error.next_offset})
    until(lambda: one.payloads() == [b"good", b"after"], "reading goes on behind it")


def test_a_bomb_is_refused_here_too(bench: Callable[..., Bench]) -> None:
    """A compressed set beyond the limits is an error in the stream, never an exhausted memory (§3.3)."""
    one = bench()
    one.broker.logs[P0] = encode_set([b"\0" * (32 << 20)], codec=Codec.GZIP)
    one.fetcher.add({P0: 0})
    until(lambda: one.errors, "the error")
    assert isinstance(one.errors[0][1], PoisonMessage)


@pytest.mark.parametrize(("policy", "to"), [("smallest", 1000), ("largest", 1012)])
@pytest.mark.parametrize("asked", [5, 99_999])
def test_out_of_range_follows_the_policy_and_says_what_was_skipped(
    bench: Callable[..., Bench], policy: str, to: int, asked: int
) -> None:
    """An offset outside the log goes to the smallest or largest, with an event naming both ends (§3.2)."""
    one = bench(reset_policy=policy)
    one.broker.first[P0] = 1000
    one.broker.logs[P0] = encode_set([b"xx"])
    one.fetcher.add({P0: asked})
    until(lambda: one.chunks, "the jump")
    reset = one.events(OffsetReset)[0]
    assert isinstance(reset, OffsetReset)
    assert (reset.asked, reset.moved_to) == (asked, to)
    assert (one.chunks[0].messages, one.chunks[0].next_offset) == ([], to)


def test_policy_raise_raises(bench: Callable[..., Bench]) -> None:
    """With the policy ``raise`` an offset outside the log is an error in the stream (docs/consumer.md)."""
    one = bench(reset_policy="raise")
    one.fetcher.add({P0: 77})
    until(lambda: one.errors, "the error")
    assert isinstance(one.errors[0][1], OffsetOutOfRange)


@pytest.mark.parametrize(("policy", "start"), [("smallest", 0), ("largest", 12)])
def test_no_offset_begins_by_policy(bench: Callable[..., Bench], policy: str, start: int) -> None:
    """Without a stored offset a consumer begins with the smallest or the largest, by configuration (§3.2)."""
    one = bench(reset_policy=policy)
    one.broker.logs[P0] = encode_set([b"xx"])
    one.fetcher.add({P0: None})
    until(lambda: one.chunks, "where to begin")
    assert one.chunks[0].offset == start


def test_a_dead_broker_is_waited_for(bench: Callable[..., Bench]) -> None:
    """A broker that dies does not end the fetcher: it waits, says so once, and goes on where it was (§3.2)."""
    one = bench()
    one.broker.logs[P0] = encode_set([b"before"])
    one.fetcher.add({P0: 0})
    until(lambda: one.payloads() == [b"before"], "the first")
    one.broker.dead = True
    until(lambda: one.events(FetcherWaiting), "it waits")
    one.broker.logs[P0] += encode_set([b"after"])
    one.broker.dead = False
    until(lambda: one.payloads() == [b"before", b"after"], "the second")
    assert one.events(FetcherBack)


def test_a_partition_not_there_yet_is_asked_again(bench: Callable[..., Bench]) -> None:
    """A partition announced before its log exists is simply asked for again."""
    one = bench()
    new = TopicPartition("t", 7)
    one.fetcher.add({new: 0, P0: 0})
    until(lambda: len(one.broker.asked) > 2, "a few rounds")
    one.broker.logs[new] = encode_set([b"here"])
    until(lambda: one.payloads(new) == [b"here"], "the message")


@pytest.mark.parametrize("offset", [0, None])
def test_an_offline_partition_holds_up_no_other(bench: Callable[..., Bench], offset: int | None) -> None:
    """A partition the broker cannot serve is told of once and asked for again; the broker's others flow (§3.2)."""
    one = bench()
    one.broker.offline = True
    one.broker.logs[P1] = encode_set([b"healthy"])
    one.fetcher.add({P0: offset, P1: offset})
    until(lambda: one.payloads(P1) == [b"healthy"], "the other partition's message")
    until(lambda: len(one.broker.asked) > 3, "a few rounds")
    assert ["offline" in str(told) for told in one.events(FetcherWaiting)] == [True]
    one.broker.offline = False
    one.broker.logs[P0] = encode_set([b"back"])
    until(lambda: one.payloads(P0) == [b"back"], "the partition's own message")


def test_nothing_is_delivered_after_remove() -> None:
    """Once ``remove`` has returned, no chunk of that partition is handed on, even if its request was under way."""
    entered, go_on = threading.Event(), threading.Event()

    class Slow(Memory):
        def multifetch(self, fetches: Sequence[FetchRequest]) -> list[memoryview | Kafka2011Error]:
            answers = super().multifetch(fetches)
            entered.set()
            go_on.wait(60)
            return answers

    broker, chunks = Slow(), []
    broker.logs[P0] = encode_set([b"x"])
    fetcher = Fetcher(
        BrokerAddress(0, "nowhere", 1),
        deliver=chunks.append,
        on_error=lambda source, error: None,
        connect=lambda host, port: broker,
    )
    fetcher.add({P0: 0})
    assert entered.wait(60)
    fetcher.remove([P0])
    go_on.set()
    fetcher.stop(60)
    assert chunks == []


def test_a_paused_partition_is_not_asked_for(bench: Callable[..., Bench]) -> None:
    """Back-pressure: a paused partition stays where it is until resumed, the others go on."""
    one = bench()
    one.broker.logs[P0] = encode_set([b"a"])
    one.fetcher.pause([P0])
    one.fetcher.add({P0: 0, P1: 0})
    one.fetcher.pause([P0])
    one.fetcher.add({P1: 0})
    seen = len(one.broker.asked)
    until(lambda: len(one.broker.asked) > seen + 2, "later rounds")
    assert all(fetch.partition == 1 for fetch in one.broker.asked[-1])
    one.fetcher.resume([P0])
    until(lambda: one.payloads() == [b"a"], "the message")
