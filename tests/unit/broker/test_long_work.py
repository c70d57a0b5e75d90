"""Sets that take long to check, on a reactor whose threads report when the test says so. Issue 19 B1, B5."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest
from twisted.internet.testing import StringTransport

from kafka2011.broker import plugins
from kafka2011.broker.long_work import QUICK_BYTES
from kafka2011.broker.protocol import BrokerProtocol
from kafka2011.broker.service import Broker
from kafka2011.config import load_config
from kafka2011.wire import (
    AckedProduceRequest,
    AckLevel,
    Codec,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    encode_set,
)
from tests.unit.broker.test_service import TestReactor
from tests.waiting import until

T = TypeVar("T")

HELLO = encode_set([b"hello"])
LARGE = encode_set([b"x" * 500] * 2000)
MEGABYTE = encode_set([b"\0" * 990] * 1000, codec=Codec.GZIP)
"""A few kilobytes that inflate to one megabyte."""


class Client(StringTransport):
    """The broker's end of a socket pair, and what became of the connection."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._ours, self.theirs = socket.socketpair()
        self._ours.setblocking(False)
        self.theirs.setblocking(False)
        self.closed = False
        self.connection = BrokerProtocol(broker, "10.0.0.1")
        self.connection.makeConnection(self)

    def getHandle(self) -> socket.socket:
        return self._ours

    def abortConnection(self) -> None:
        self.closed = True

    def loseConnection(self) -> None:
        self.closed = True

    def send(self, *frames: bytes) -> None:
        """What arrives in one read."""
        self.connection.dataReceived(b"".join(frames))

    def answers(self) -> bytes:
        """What was sent to the client since the last time."""
        try:
            return self.theirs.recv(1 << 16)
        except BlockingIOError:
            return b""


@pytest.fixture
def reactor() -> TestReactor:
    return TestReactor()


@pytest.fixture
def broker(tmp_path: Path, reactor: TestReactor, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    monkeypatch.setattr(plugins, "installed", lambda: ({}, {}))
    monkeypatch.setattr("kafka2011.broker.protocol.BrokerProtocol._tune", lambda *_: None)
    flags = {"log.dir": str(tmp_path / "data"), "port": "0", "produce.acks.enable": "true"}
    running: Any = reactor
    one = Broker(load_config(flags=flags), reactor=running)
    one.start()
    yield one
    stopping = one.stop()
    until(lambda: reactor.turn() or stopping.called, "the broker stopped")


def turned(reactor: TestReactor, condition: Callable[[], T], what: str) -> T:
    """Turn the reactor until ``condition`` holds."""

    def turn() -> T:
        reactor.turn()
        return condition()

    return until(turn, what)


def end_of(broker: Broker, topic: str = "t") -> int:
    """Where the topic's log ends."""
    log = broker.store.get(topic, 0)
    return 0 if log is None else log.end_offset


@pytest.mark.parametrize("data", [LARGE, MEGABYTE], ids=["large", "inflates"])
def test_a_set_that_takes_long_holds_up_its_own_connection_only(
    broker: Broker, reactor: TestReactor, data: bytes
) -> None:
    """B1: "anything over a few milliseconds leaves the reactor thread": others are served, its own order is kept."""
    asked, bystander = Client(broker), Client(broker)
    asked.send(
        ProduceRequest("t", 0, HELLO).encode(),
        ProduceRequest("t", 0, data).encode(),
        ProduceRequest("t", 0, HELLO).encode(),
        OffsetsRequest("nobody-knows", 0, -1, 1).encode(),
    )
    bystander.send(OffsetsRequest("nobody-knows", 0, -1, 1).encode())
    assert (end_of(broker), asked.answers()) == (len(HELLO), b""), "what came before is there, what came after waits"
    assert bystander.answers(), "a bystander is served meanwhile"
    assert broker.limits.partial_bytes >= len(data), "it counts as in flight"
    turned(reactor, lambda: end_of(broker) > len(HELLO), "the thread has reported")

    assert end_of(broker) == len(HELLO) + len(data) + len(HELLO)
    assert asked.answers()
    assert broker.limits.partial_bytes == 0


def test_small_sets_stay_where_they_are(broker: Broker) -> None:
    """B1: a set of a few messages, compressed or not, needs no thread."""
    client = Client(broker)
    small = encode_set([b"x" * 100] * 50, codec=Codec.GZIP)
    client.send(ProduceRequest("t", 0, small).encode(), ProduceRequest("t", 0, encode_set([b"x"] * 5000)).encode())

    assert end_of(broker) == len(small) + 11 * 5000


def test_many_small_bombs_in_one_read_are_not_quick(broker: Broker, reactor: TestReactor) -> None:
    """B1: a hundred sets that each inflate to a quarter of a megabyte are together as much as one large one."""
    client = Client(broker)
    each = encode_set([b"\0" * 100_000], codec=Codec.GZIP)
    client.send(*(ProduceRequest("t", 0, each).encode() for _ in range(100)))
    assert end_of(broker) < 5 * len(each)
    turned(reactor, lambda: end_of(broker) == 100 * len(each), "all are appended")
    assert not client.closed


def test_a_client_that_left_gets_its_messages_appended(broker: Broker, reactor: TestReactor) -> None:
    """§3.1: a producer that sends and hangs up, as 0.7's do, loses nothing by its sets being large."""
    client = Client(broker)
    client.send(ProduceRequest("t", 0, LARGE).encode())
    client.connection.connectionLost()
    turned(reactor, lambda: end_of(broker) == len(LARGE), "it is appended")


def test_a_request_has_one_budget(broker: Broker, reactor: TestReactor) -> None:
    """B1: "one budget per request": forty sets of a megabyte each are more than 32 MiB; the named refusal closes."""
    client, bystander = Client(broker), Client(broker)
    sets = tuple(ProduceRequest("t", 0, MEGABYTE) for _ in range(40))
    assert len(MEGABYTE) * 40 < QUICK_BYTES * 4
    client.send(MultiProduceRequest(sets).encode())
    turned(reactor, lambda: client.closed, "the connection is closed")
    bystander.send(ProduceRequest("t", 0, HELLO).encode())

    assert 30 * len(MEGABYTE) <= end_of(broker) - len(HELLO) < 40 * len(MEGABYTE), "as many as the budget was for"
    (closed,) = [entry.event for entry in broker.journal.since() if entry.event.name == "connection_closed"]
    assert "inflates to more than" in closed.as_dict()["reason"]


def test_a_request_of_too_many_messages_is_refused_by_name(broker: Broker, reactor: TestReactor) -> None:
    """B5: 600,000 empty messages in one acknowledged produce: MessageTooLarge (103), nothing appended."""
    client = Client(broker)
    many = encode_set([b""] * 600_000)
    client.send(AckedProduceRequest(AckLevel.APPENDED, ProduceRequest("t", 0, many)).encode())
    answer = turned(reactor, client.answers, "it is answered")

    assert struct.unpack(">ihqq", answer) == (18, 103, -1, -1)
    assert end_of(broker) == 0


def test_an_acknowledged_produce_that_takes_long_is_answered(broker: Broker, reactor: TestReactor) -> None:
    """B1: the acknowledged produce goes the same way, and says where its set is."""
    client = Client(broker)
    client.send(AckedProduceRequest(AckLevel.FLUSHED, ProduceRequest("t", 0, MEGABYTE)).encode())
    assert end_of(broker) == 0
    answer = turned(reactor, client.answers, "it is answered")

    assert struct.unpack(">ihqq", answer) == (18, 0, 0, len(MEGABYTE))


def test_work_nobody_waits_for_is_not_done(broker: Broker, reactor: TestReactor) -> None:
    """B1: when a client leaves before its turn, its work is not done at all."""
    done: list[str] = []
    first = broker.unpacking.do(lambda: done.append("first"))
    second = broker.unpacking.do(lambda: done.append("second"))
    second.addErrback(lambda _: None)
    second.cancel()
    third = broker.unpacking.do(lambda: done.append("third"))
    turned(reactor, lambda: first.called and third.called, "both are done")

    assert done[0] == "first"
    assert done[-1] == "third"


def test_what_a_thread_reports_after_the_stop_is_not_appended(broker: Broker, reactor: TestReactor) -> None:
    """A set that was still being checked when the broker stopped does not get into a log that was closed cleanly."""
    client = Client(broker)
    client.send(ProduceRequest("t", 0, HELLO).encode(), ProduceRequest("t", 0, LARGE).encode())
    assert end_of(broker) == len(HELLO)
    stopping = broker.stop()
    turned(reactor, lambda: stopping.called, "the broker stopped")
    reactor.turn()

    assert end_of(broker) == len(HELLO)
    assert broker.counters.dropped["LogError"] <= 1


@pytest.mark.parametrize("kind", ["requests", "one request"])
def test_new_topics_without_end_let_others_have_their_turn(broker: Broker, reactor: TestReactor, kind: str) -> None:
    """B3: three thousand new topics in one read, or in one MULTIPRODUCE, are made in many turns; none is left out."""
    broker.now = count(0.0, 0.006).__next__  # every look at the clock is six milliseconds later
    produces = tuple(ProduceRequest(f"t{n}", 0, HELLO) for n in range(30))
    frames = [MultiProduceRequest(produces).encode()] if kind == "one request" else [one.encode() for one in produces]
    client, other = Client(broker), Client(broker)
    client.send(*frames)
    made = len(broker.store.topics())
    other.send(OffsetsRequest("t", 0, -1, 1).encode())

    assert 0 < made < 30
    assert other.answers()
    for _ in range(30):
        reactor.advance(0)
    assert [end_of(broker, one.topic) for one in produces] == [len(HELLO)] * 30


def test_a_multi_fetch_of_thousands_is_looked_up_in_many_turns(broker: Broker, reactor: TestReactor) -> None:
    """N6: the largest multi-fetch holds up its own connection only, and is answered whole."""
    client = Client(broker)
    fetches = (FetchRequest("nothing", 0, 0, 50),) * 5000
    client.send(MultiFetchRequest(fetches).encode(), OffsetsRequest("t", 0, -1, 1).encode())

    assert client.answers() == b""
    received = b""
    for _ in range(1000):
        reactor.advance(0.001)
        received += client.answers()
    assert len(received) > 6 + 6 * 5000
    assert received[:6] == (2 + 6 * 5000).to_bytes(4, "big") + b"\0\0"
