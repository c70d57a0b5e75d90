"""The connection to a broker: exact bytes out, exact bytes in, and no stream used after it lost its place."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.errors import (
    CannotConnect,
    ConnectionFailed,
    InvalidMessageSize,
    OffsetOutOfRange,
    RequestTimedOut,
    UnknownError,
    WrongPartition,
)
from kafka2011.wire import (
    EARLIEST,
    AckedProduceRequest,
    AckLevel,
    FetchRequest,
    MultiFetchRequest,
    OffsetsRequest,
    ProduceRequest,
    Request,
    encode_set,
)
from kafka2011.wire.acked_produce import encode_acked_response
from kafka2011.wire.fetch import encode_fetch_response
from kafka2011.wire.multifetch import encode_multifetch_header
from kafka2011.wire.offsets import encode_offsets_response
from tests.unit.producer.conftest import MakeBroker
from tests.unit.producer.puppet import PuppetBroker
from tests.waiting import until

DATA = encode_set([b"hello", b"there"])


def connect(broker: PuppetBroker, **options: float) -> BrokerConnection:
    return BrokerConnection("127.0.0.1", broker.port, connect_timeout_s=options.pop("connect_timeout_s", 5), **options)


def test_a_fetch_returns_the_message_set_bytes(make_broker: MakeBroker) -> None:
    """A pull request carries offset and acceptable bytes, and the answer is message-set bytes (§3.1)."""
    broker = make_broker(lambda request, peer: peer.sendall(encode_fetch_response(DATA)))
    with connect(broker) as connection:
        assert connection.fetch("test", 0, 0, 1 << 20) == DATA

    assert broker.requests == [FetchRequest("test", 0, 0, 1 << 20)]


def test_an_answer_may_arrive_byte_by_byte(make_broker: MakeBroker) -> None:
    """Replies are read exactly, however the network cuts them (docs/protocol.md)."""

    def dribble(request: Request, peer: socket.socket) -> None:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in encode_fetch_response(DATA):
            peer.sendall(bytes([byte]))

    with connect(make_broker(dribble)) as connection:
        assert [connection.fetch("t", 0, 0), connection.fetch("t", 0, 0)] == [DATA, DATA]


def test_an_answer_larger_than_the_buffer_is_whole(make_broker: MakeBroker) -> None:
    """A fetch of several megabytes comes back byte for byte (§3.1)."""
    big = os.urandom(5 << 20)
    with connect(make_broker(lambda request, peer: peer.sendall(encode_fetch_response(big)))) as connection:
        assert connection.fetch("t", 0, 0, 6 << 20) == big
        assert connection.fetch("t", 0, 0, 6 << 20) == big


@pytest.mark.parametrize(("code", "error"), [(3, WrongPartition), (-1, UnknownError)])
def test_error_codes_become_errors(make_broker: MakeBroker, code: int, error: type[Exception]) -> None:
    """Each wire error code is its own error (docs/protocol.md), and the connection stays usable."""
    broker = make_broker(lambda request, peer: peer.sendall(encode_fetch_response(error=code)))
    with connect(broker) as connection:
        for _ in range(2):
            with pytest.raises(error, match="t-7"):
                connection.fetch("t", 7, 0)

    assert broker.n_connections == 1


def range_answer(request: Request, peer: socket.socket) -> None:
    if isinstance(request, OffsetsRequest):
        peer.sendall(encode_offsets_response([100 if request.time_ms == EARLIEST else 240]))
    elif isinstance(request, MultiFetchRequest):
        parts = [encode_fetch_response(DATA), encode_fetch_response(error=1)]
        peer.sendall(encode_multifetch_header([len(DATA), 0]) + b"".join(parts))
    else:
        peer.sendall(encode_fetch_response(error=1))


def test_out_of_range_names_the_range(make_broker: MakeBroker) -> None:
    """An offset outside the log is refused naming what the log holds (§3.1, docs/log.md)."""
    with connect(make_broker(range_answer)) as connection, pytest.raises(OffsetOutOfRange, match="100 up to 240"):
        connection.fetch("t", 0, 999)


def test_one_bad_partition_of_a_multifetch_leaves_the_others(make_broker: MakeBroker) -> None:
    """Each sub-request of a multifetch has its own answer or its own error (docs/protocol.md)."""
    fetches = [FetchRequest("t", 0, 0, 1000), FetchRequest("t", 1, 999, 1000)]
    with connect(make_broker(range_answer)) as connection:
        good, bad = connection.multifetch(fetches)

    assert good == DATA
    assert isinstance(bad, OffsetOutOfRange)
    assert (bad.offset, bad.first, bad.end) == (999, 100, 240)


def test_offsets_come_newest_first(make_broker: MakeBroker) -> None:
    """An offsets request returns what the broker lists (docs/log.md)."""
    broker = make_broker(lambda request, peer: peer.sendall(encode_offsets_response([240, 216, 108, 0])))
    with connect(broker) as connection:
        assert connection.offsets("t", 0, max_offsets=10) == [240, 216, 108, 0]


def test_produce_leaves_at_once_and_unanswered(broker: PuppetBroker) -> None:
    """A produce has no answer, ever (docs/protocol.md): several requests follow each other on one connection."""
    with connect(broker) as connection:
        connection.produce("t", 0, DATA)
        connection.multiproduce([ProduceRequest("t", 1, DATA), ProduceRequest("u", 0, b"")])
        until(lambda: len(broker.requests) == 2, "both requests arrived")

    assert broker.requests[0] == ProduceRequest("t", 0, DATA)
    assert broker.n_connections == 1


def test_an_acknowledged_produce_returns_its_offsets(make_broker: MakeBroker) -> None:
    """The extension answers with first and next offset; it is not in 2011."""
    broker = make_broker(lambda request, peer: peer.sendall(encode_acked_response(30, 60)))
    with connect(broker) as connection:
        assert connection.produce_acked("t", 0, DATA, AckLevel.FLUSHED) == (30, 60)

    assert broker.requests == [AckedProduceRequest(AckLevel.FLUSHED, ProduceRequest("t", 0, DATA))]


def test_a_late_answer_never_reaches_another_request(make_broker: MakeBroker) -> None:
    """After a timeout the connection is discarded, so the late reply cannot be taken for the next one.

    See docs/protocol.md.
    """
    may_answer = threading.Event()

    def answer(request: Request, peer: socket.socket) -> None:
        assert isinstance(request, FetchRequest)
        if request.offset == 0:
            may_answer.wait(60)
        peer.sendall(encode_fetch_response(str(request.offset).encode()))

    broker = make_broker(answer)
    with connect(broker, timeout_s=0.2) as impatient:
        with pytest.raises(RequestTimedOut, match="did not answer"):
            impatient.fetch("t", 0, 0)
        assert not impatient.connected
        may_answer.set()
        patient = connect(broker, timeout_s=30)
        assert patient.fetch("t", 0, 15) == b"15"


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another protocol"),
        pytest.param(b"\xff\xff\xff\xff\x00\x00", id="negative size"),
        pytest.param(encode_fetch_response(b"x" * 1001), id="more than asked for"),
        pytest.param(encode_fetch_response(DATA) + b"!", id="stray bytes"),
    ],
)
def test_nonsense_closes_the_stream_before_anything_is_allocated(make_broker: MakeBroker, reply: bytes) -> None:
    """A reply that cannot be one ends the connection with a named error (reliability: no desynchronised stream)."""
    with connect(make_broker(lambda request, peer: peer.sendall(reply))) as connection:
        with pytest.raises(InvalidMessageSize, match=r"127\.0\.0\.1"):
            connection.fetch("t", 0, 0, 1000)
        assert not connection.connected


def test_a_read_survives_a_restarted_broker(make_broker: MakeBroker) -> None:
    """A stale connection is noticed and replaced; the fetch is simply asked again (§3.1: a stateless broker)."""
    broker = make_broker(lambda request, peer: peer.sendall(encode_fetch_response(DATA)))
    with connect(broker) as connection:
        assert connection.fetch("t", 0, 0) == DATA
        broker.hang_up()
        assert connection.fetch("t", 0, 0) == DATA

    assert broker.n_connections == 2


def test_a_closed_connection_is_an_error_not_a_hang(make_broker: MakeBroker) -> None:
    """A broker that closes without a reply (docs/protocol.md) gives ConnectionFailed."""
    broker = make_broker(lambda request, peer: peer.shutdown(socket.SHUT_RDWR))
    with connect(broker) as connection, pytest.raises(ConnectionFailed, match="closed"):
        connection.offsets("t", -1)


def test_not_reaching_a_broker_is_definite(broker: PuppetBroker) -> None:
    """If no connection could be made, certainly nothing was sent, and the error says so."""
    broker.close()
    with pytest.raises(CannotConnect, match="nothing was sent") as caught:
        connect(broker, connect_timeout_s=0.05).produce("t", 0, DATA)

    assert caught.value.definite
    assert caught.value.retriable


def test_a_child_process_does_not_share_the_stream(make_broker: MakeBroker) -> None:
    """After fork the child opens its own connection; the parent's stays in step."""
    broker = make_broker(lambda request, peer: peer.sendall(encode_fetch_response(DATA)))
    with connect(broker) as connection:
        connection.fetch("t", 0, 0)
        child = os.fork()
        if not child:
            os._exit(0 if connection.fetch("t", 0, 0) == DATA else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert connection.fetch("t", 0, 0) == DATA

    assert broker.n_connections == 2


def counting(asked: list[Request]) -> Callable[[Request, socket.socket], None]:
    """Answer a fetch with its own offset, and note what was asked."""

    def answer(request: Request, peer: socket.socket) -> None:
        asked.append(request)
        if isinstance(request, FetchRequest):
            peer.sendall(encode_fetch_response(b"%d" % request.offset))
        else:
            peer.sendall(encode_offsets_response([7]))

    return answer


def test_a_fetch_sent_ahead_is_sent_once(make_broker: MakeBroker) -> None:
    """Its answer is read when the same fetch is asked for (issue 23, point 2)."""
    asked: list[Request] = []
    with connect(make_broker(counting(asked))) as connection:
        assert connection.fetch("t", 0, 1, 100) == b"1"
        ahead = FetchRequest("t", 0, 2, 100)
        connection.fetch_ahead(ahead)
        assert bytes(connection.fetch_view(ahead)) == b"2"
        assert connection.fetch("t", 0, 3, 100) == b"3"
    assert [request.offset for request in asked if isinstance(request, FetchRequest)] == [1, 2, 3]


def test_an_answer_nobody_asks_for_any_more_is_dropped(make_broker: MakeBroker) -> None:
    """Another request than the one sent ahead gets its own answer, on the same connection."""
    asked: list[Request] = []
    broker = make_broker(counting(asked))
    with connect(broker) as connection:
        connection.fetch("t", 0, 1, 100)
        connection.fetch_ahead(FetchRequest("t", 0, 2, 100))
        assert connection.offsets("t", 0) == [7]
        connection.fetch_ahead(FetchRequest("t", 0, 2, 100))
        assert connection.fetch("t", 0, 9, 100) == b"9"
    assert broker.n_connections == 1


def test_sending_ahead_never_fails(make_broker: MakeBroker) -> None:
    """A broker that hung up, or was never asked, shows when the answer is asked for; the fetch is then made anew."""
    asked: list[Request] = []
    answer = counting(asked)

    def once_silent(request: Request, peer: socket.socket) -> None:
        if len(asked) == 1:
            asked.append(request)
            peer.shutdown(socket.SHUT_RDWR)
        else:
            answer(request, peer)

    broker = make_broker(once_silent)
    ahead = FetchRequest("t", 0, 2, 100)
    with connect(broker) as connection:
        connection.fetch_ahead(ahead)
        assert bytes(connection.fetch_view(ahead)) == b"2"
        connection.fetch_ahead(ahead)
        assert bytes(connection.fetch_view(ahead)) == b"2"
    assert broker.n_connections == 2
