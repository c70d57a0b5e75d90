"""The producer's promises: order, batches, a bounded queue, and never a silent drop."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from kafka2011.errors import CannotConnect, ConfigError, MessageTooLarge, ProducerClosed, QueueFull, RequestTimedOut
from kafka2011.events import Journal
from kafka2011.producer import Codec, Producer
from kafka2011.wire import AckedProduceRequest, ProduceRequest, Request, decode_set, encode_set
from kafka2011.wire.acked_produce import encode_acked_error, encode_acked_response
from tests.unit.producer.conftest import MakeBroker
from tests.unit.producer.puppet import PuppetBroker
from tests.waiting import until


class Drops(list[tuple[str, int, str]]):
    """An ``on_drop`` that remembers."""

    def __call__(self, topic: str, n: int, reason: str) -> None:
        self.append((topic, n, reason))


def nobody_listens() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_close_sends_what_is_queued_in_order(broker: PuppetBroker) -> None:
    """close() flushes, may be called twice, and later sends are refused (docs/paper-vs-code.md)."""
    payloads = [b"%d" % i for i in range(1000)]
    producer = Producer(broker.address, linger_ms=60_000, batch_size=10_000)
    for payload in payloads:
        producer.send("clicks", payload)
    producer.close()
    producer.close()

    assert broker.received(1000) == payloads
    assert (producer.counters.accepted, producer.counters.sent, producer.counters.dropped) == (1000, 1000, 0)
    with pytest.raises(ProducerClosed, match="make a new Producer"):
        producer.send("clicks", b"late")


def test_flush_does_not_wait_for_the_linger(broker: PuppetBroker) -> None:
    """flush() returns when everything left, though neither the batch is full nor the linger over."""
    with Producer(broker.address, linger_ms=3_600_000, batch_size=10_000) as producer:
        producer.send("clicks", [b"a", b"b"])
        producer.flush(60)
        until(lambda: broker.payloads == [b"a", b"b"], "both arrived")


def test_the_linger_ends_by_itself(broker: PuppetBroker) -> None:
    """Messages that never fill a batch leave after the linger (docs/producer.md: queue.time)."""
    with Producer(broker.address, linger_ms=20, batch_size=10_000) as producer:
        producer.send("clicks", b"alone")
        until(lambda: broker.payloads == [b"alone"], "it arrived without a flush")


def test_a_full_batch_leaves_before_the_linger_ends(broker: PuppetBroker) -> None:
    """batch_size messages are sent at once, in one request (§5)."""
    with Producer(broker.address, linger_ms=3_600_000, batch_size=50) as producer:
        for i in range(50):
            producer.send("clicks", b"%d" % i)
        until(lambda: len(broker.payloads) == 50, "the batch arrived")

    assert len(broker.produced) == 1


def test_one_request_per_message_with_batch_size_1(broker: PuppetBroker) -> None:
    """Batch size 1 is the paper's "one message at a time", however many share a system call (§5)."""
    with Producer(broker.address, batch_size=1) as producer:
        for i in range(500):
            producer.send("clicks", b"%d" % i)

    assert broker.received(500) == [b"%d" % i for i in range(500)]
    assert len(broker.produced) == 500


def test_batches_are_per_topic(broker: PuppetBroker) -> None:
    """A batch holds messages of one topic; each topic keeps its order."""
    with Producer(broker.address, linger_ms=3_600_000, batch_size=1000) as producer:
        for i in range(40):
            producer.send("even" if i % 2 == 0 else "odd", b"%d" % i)

    broker.received(40)
    found = {r.topic: [m.payload for m in decode_set(r.data)] for r in broker.produced}
    assert found == {"even": [b"%d" % i for i in range(0, 40, 2)], "odd": [b"%d" % i for i in range(1, 40, 2)]}


def test_many_threads_share_a_producer(broker: PuppetBroker) -> None:
    """Any thread may send: nothing is lost or doubled, and each thread's order is kept."""
    with Producer(broker.address, batch_size=7, queue_size=100) as producer:

        def work(name: int) -> None:
            for i in range(300):
                producer.send("clicks", b"%d %d" % (name, i))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    received = broker.received(1200)
    assert len(received) == 1200
    for name in range(4):
        mine = [p for p in received if p.startswith(b"%d " % name)]
        assert mine == [b"%d %d" % (name, i) for i in range(300)]


def test_the_eleventh_of_ten_raises() -> None:
    """A full queue refuses by name under the policy ``raise`` (docs/paper-vs-code.md), and takes nothing of the set."""
    quick = {"linger_ms": 3_600_000, "connect_timeout_s": 0.01, "on_drop": Drops()}
    with Producer(nobody_listens(), queue_size=10, on_full="raise", **quick) as p:  # type: ignore[arg-type]
        p.send("clicks", [b"x"] * 10)
        with pytest.raises(QueueFull, match="holds 10 messages"):
            p.send("clicks", b"y")
        assert p.counters.accepted == 10


def test_drops_at_a_full_queue_are_counted_and_called_back() -> None:
    """Under the policy ``drop`` every dropped message is counted, called back and in the journal: never silent."""
    drops, journal = Drops(), Journal()
    producer = Producer(
        nobody_listens(),
        queue_size=10,
        linger_ms=3_600_000,
        on_full="drop",
        on_drop=drops,
        journal=journal,
        retries=0,
        connect_timeout_s=0.01,
    )
    producer.send("clicks", [b"x"] * 10)
    producer.send("clicks", [b"y"] * 3)

    assert drops == [("clicks", 3, "the queue is full")]
    producer.close()
    counters = producer.counters
    assert (counters.accepted, counters.sent, counters.dropped) == (13, 0, 13)
    assert sum(entry.event.as_dict().get("n_messages", 0) for entry in journal.since()) == 13


def test_a_blocked_send_goes_on_when_there_is_room(broker: PuppetBroker) -> None:
    """Under the policy ``block`` send() waits for room; nothing is lost and the queue stays bounded (§5)."""
    payloads = [b"%d" % i for i in range(500)]
    with Producer(broker.address, queue_size=3, batch_size=200, linger_ms=3_600_000) as producer:
        for payload in payloads:
            producer.send("clicks", payload)

    assert broker.received(500) == payloads


def test_the_queue_is_bounded_in_bytes_too() -> None:
    """Large messages fill the queue by bytes, long before their number does."""
    quick = {"linger_ms": 3_600_000, "connect_timeout_s": 0.01, "on_drop": Drops()}
    with Producer(nobody_listens(), queue_bytes=1000, on_full="raise", **quick) as p:  # type: ignore[arg-type]
        p.send("clicks", b"x" * 900)
        with pytest.raises(QueueFull, match="900 bytes"):
            p.send("clicks", b"x" * 101)


def test_a_message_over_the_limit_is_refused_and_the_rest_goes_on(broker: PuppetBroker) -> None:
    """max - 1 and max pass, max + 1 is refused by name with nothing of its set sent (reliability: message size)."""
    with Producer(broker.address, max_message_size=100) as producer:
        producer.send("clicks", b"x" * 99)
        producer.send("clicks", b"x" * 100)
        with pytest.raises(MessageTooLarge, match=r"max\.message\.size = 100"):
            producer.send("clicks", [b"small", b"x" * 101])

    assert [len(p) for p in broker.received(2)] == [99, 100]


def test_an_unreachable_broker_is_told_not_hidden() -> None:
    """After bounded retries the messages are dropped, counted and called back with the reason (§5)."""
    drops = Drops()
    with Producer(nobody_listens(), retries=2, connect_timeout_s=0.01, on_drop=drops) as producer:
        producer.send("clicks", [b"a", b"b"])
        producer.flush(60)

        assert [(topic, n) for topic, n, _ in drops] == [("clicks", 2)]
        assert "cannot connect" in drops[0][2]
        assert producer.counters.retried == 4


def test_a_failing_callback_does_not_end_the_producer() -> None:
    """An ``on_drop`` that raises is noted; messages go on being handled."""

    def bad(topic: str, n: int, reason: str) -> None:
        raise RuntimeError("application bug")

    journal = Journal()
    with Producer(nobody_listens(), retries=0, connect_timeout_s=0.01, on_drop=bad, journal=journal) as producer:
        for _ in range(2):
            producer.send("clicks", b"x")
            producer.flush(60)

        assert producer.counters.dropped == 2
    assert [e.event.name for e in journal.since()].count("callback_failed") == 2


def test_messages_for_a_dead_broker_go_to_a_live_one(broker: PuppetBroker) -> None:
    """Where nothing was sent, another broker gets it: no loss, no copy (docs/reliability.md)."""
    payloads = [b"%d" % i for i in range(400)]
    dead = nobody_listens()
    with Producer(f"{dead},{broker.address}", batch_size=10, connect_timeout_s=0.01, retries=10) as producer:
        for payload in payloads:
            producer.send("clicks", payload)
            if payload.endswith(b"00"):
                producer.flush(60)  # so that both brokers get their turn
        producer.flush(60)

        assert (producer.counters.sent, producer.counters.dropped) == (400, 0)
    assert sorted(broker.received(400)) == sorted(payloads)


def test_a_broker_that_hung_up_is_noticed_before_sending(broker: PuppetBroker) -> None:
    """A connection closed by the broker is replaced, not written into: the messages arrive."""
    with Producer(broker.address) as producer:
        producer.send("clicks", b"before")
        producer.flush(60)
        until(lambda: broker.payloads == [b"before"], "the first arrived")
        broker.hang_up()
        producer.send("clicks", b"after")
        producer.flush(60)
        until(lambda: broker.payloads == [b"before", b"after"], "the second arrived on a new connection")


def test_a_write_that_breaks_is_counted_once_and_never_repeated() -> None:
    """A message the kernel had begun to take may have arrived: dropped and told, never sent twice; the rest is (§5)."""
    drops = Drops()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        limits = {"max_message_size": 64 << 20, "queue_bytes": 128 << 20}
        with Producer(address, batch_size=1, on_drop=drops, **limits) as producer:
            producer.send("clicks", bytes(32 << 20))  # more than the kernel's buffers take
            producer.send("clicks", b"after")
            first, _ = listener.accept()
            first.recv(10)
            first.close()  # with bytes unread: a reset, in the middle of the write
            second, _ = listener.accept()
            producer.flush(60)
            received = second.recv(1 << 16)
            second.close()

    assert [(topic, n) for topic, n, _ in drops] == [("clicks", 1)]
    assert (producer.counters.sent, producer.counters.dropped) == (1, 1)
    assert received == ProduceRequest("clicks", -1, encode_set([b"after"])).encode()


def test_flush_says_when_time_is_up(make_broker: MakeBroker) -> None:
    """flush(timeout) raises RequestTimedOut while messages are still under way."""
    release = threading.Event()

    def answer(request: Request, peer: socket.socket) -> None:
        release.wait(60)
        peer.sendall(encode_acked_response(0, 11))

    with Producer(make_broker(answer).address, acks="appended") as producer:
        producer.send("clicks", b"x")
        with pytest.raises(RequestTimedOut, match="still being tried"):
            producer.flush(0.05)
        release.set()
        producer.flush(60)
        assert producer.counters.sent == 1


def test_sync_sends_before_it_returns_and_raises(broker: PuppetBroker) -> None:
    """A synchronous producer's send carries its whole set in one request, and failure is an exception.

    See docs/producer.md.
    """
    with Producer(broker.address, sync=True, batch_size=2) as producer:
        producer.send("clicks", [b"a", b"b", b"c"])
        assert producer.counters.sent == 3
    assert broker.received(3) == [b"a", b"b", b"c"]
    assert len(broker.produced) == 1

    lonely = Producer(nobody_listens(), sync=True, retries=0, connect_timeout_s=0.01)
    with lonely, pytest.raises(CannotConnect, match="nothing was sent"):
        lonely.send("clicks", b"x")


def test_sync_goes_elsewhere_too(broker: PuppetBroker) -> None:
    """A synchronous send that finds its broker dead reaches a live one."""
    with Producer(f"{nobody_listens()},{broker.address}", sync=True, connect_timeout_s=0.01) as producer:
        for i in range(20):
            producer.send("clicks", b"%d" % i)

    assert broker.received(20) == [b"%d" % i for i in range(20)]


def test_acks_are_waited_for(make_broker: MakeBroker) -> None:
    """With acks a message counts as sent when the broker confirmed it; a refusal is a drop with the reason."""

    def answer(request: Request, peer: socket.socket) -> None:
        assert isinstance(request, AckedProduceRequest)
        refused = b"bad" in request.produce.data
        peer.sendall(encode_acked_error(MessageTooLarge("no")) if refused else encode_acked_response(0, 13))

    drops = Drops()
    with Producer(make_broker(answer).address, acks="flushed", batch_size=1, on_drop=drops) as producer:
        producer.send("clicks", [b"one", b"bad", b"two"])
        producer.flush(60)

        assert (producer.counters.sent, producer.counters.dropped) == (2, 1)
    assert "MessageTooLarge" in drops[0][2]


def test_a_lost_ack_is_asked_for_again(make_broker: MakeBroker) -> None:
    """With acks a message whose acknowledgement got lost is sent again: a copy is legal, loss is not."""
    seen: list[Request] = []

    def answer(request: Request, peer: socket.socket) -> None:
        seen.append(request)
        if len(seen) == 1:
            peer.shutdown(socket.SHUT_RDWR)
        else:
            peer.sendall(encode_acked_response(0, 11))

    with Producer(make_broker(answer).address, acks="appended") as producer:
        producer.send("clicks", b"x")
        producer.flush(60)
        assert (producer.counters.sent, producer.counters.dropped) == (1, 0)
    assert len(seen) == 2


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_compressed_batches_arrive_whole(broker: PuppetBroker, codec: Codec) -> None:
    """A producer may compress its sets; the reader gets the messages (§4)."""
    payloads = [b"message %d" % i for i in range(500)]
    with Producer(broker.address, codec=codec) as producer:
        producer.send("clicks", payloads)

    assert broker.received(500) == payloads
    assert {decode_set(r.data, deep=False)[0].payload[:2] for r in broker.produced} <= {b"\x1f\x8b", b"\x82S"}


def test_after_a_fork_parent_and_child_both_send(broker: PuppetBroker) -> None:
    """A forked child has its own queue and connection; the parent's messages are sent once, by the parent."""
    with Producer(broker.address, linger_ms=3_600_000) as producer:
        producer.send("clicks", b"parent")
        child = os.fork()
        if not child:
            producer.send("clicks", b"child")
            producer.flush(60)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        producer.flush(60)
        until(lambda: sorted(broker.payloads) == [b"child", b"parent"], "one of each arrived")


def test_impossible_settings_are_refused() -> None:
    """Settings that cannot work are named at once."""
    for wrong in ({"batch_size": 0}, {"queue_size": 0}, {"linger_ms": -1}, {"on_full": "wait"}, {"acks": "every"}):
        with pytest.raises(ConfigError, match=r"batch_size|on_full"):
            Producer("127.0.0.1:9092", **wrong)  # type: ignore[arg-type]
