"""A producer and a broker that dies, stops or comes back."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.errors import RequestTimedOut
from kafka2011.producer import Producer
from kafka2011.testing import BrokerProcess
from kafka2011.wire import decode_set, valid_bytes
from tests.waiting import until


@pytest.fixture
def broker() -> Iterator[BrokerProcess]:
    flush = {"log.flush.interval": 50, "log.default.flush.scheduler.interval.ms": 50}
    with BrokerProcess(options=flush | {"produce.acks.enable": True}) as process:
        yield process


def stored(broker: BrokerProcess, topic: str) -> list[bytes]:
    payloads, offset = [], 0
    with BrokerConnection(broker.host, broker.port) as connection:
        while data := connection.fetch(topic, 0, offset):
            payloads += [message.payload for message in decode_set(data, offset)]
            offset += valid_bytes(data)
    return payloads


def test_what_was_acknowledged_as_flushed_survives_kill_9(broker: BrokerProcess) -> None:
    """A broker killed under load loses nothing it acknowledged; unacknowledged messages come again (§3.1, §5)."""
    confirmed: list[bytes] = []
    producer = Producer(broker.address, acks="flushed", sync=True, retries=20, connect_timeout_s=10)
    stop = threading.Event()

    def send() -> None:
        i = 0
        while not stop.is_set():
            payloads = [b"%d" % (i + k) for k in range(20)]
            producer.send("clicks", payloads)
            confirmed.extend(payloads)
            i += 20

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    until(lambda: len(confirmed) > 200, "messages are being confirmed")
    broker.kill()
    broker.restart()
    before = len(confirmed)
    until(lambda: len(confirmed) > before + 200, "messages are confirmed again after the restart")
    stop.set()
    sender.join(60)
    producer.close()

    assert not sender.is_alive()
    assert set(confirmed) <= set(stored(broker, "clicks"))
    assert producer.counters.dropped == 0


def test_an_asynchronous_producer_outlives_a_restart(broker: BrokerProcess) -> None:
    """After a broker came back the same producer goes on; what it knows it lost is counted (§5)."""
    with Producer(broker.address, retries=20, connect_timeout_s=10) as producer:
        producer.send("clicks", b"before")
        producer.flush(60)
        until(lambda: stored(broker, "clicks") == [b"before"], "the first is stored")
        broker.kill()
        producer.send("clicks", b"while it was down")
        broker.restart()
        producer.send("clicks", b"after")
        producer.flush(120)
        until(lambda: len(stored(broker, "clicks")) == 3, "all are stored")

    assert stored(broker, "clicks") == [b"before", b"while it was down", b"after"]
    assert producer.counters.dropped == 0


def test_a_stopped_broker_fills_the_queue_and_every_drop_is_counted(broker: BrokerProcess) -> None:
    """With the broker stopped (SIGSTOP) the queue is bounded; sent + dropped = accepted, and what was sent arrives."""
    payload = bytes(100_000)
    drops: list[int] = []
    options = {"queue_bytes": 2_000_000, "on_full": "drop", "batch_size": 10}
    with Producer(broker.address, on_drop=lambda topic, n, reason: drops.append(n), **options) as producer:
        producer.send("clicks", b"first")
        producer.flush(60)
        broker.pause()
        try:
            with pytest.raises(RequestTimedOut, match="still being tried"):
                for _ in range(2000):  # far more than the kernel's buffers take
                    producer.send("clicks", payload)
                    producer.flush(0.1)
            while not drops:
                producer.send("clicks", payload)
        finally:
            broker.resume()
        producer.flush(120)
        counters = producer.counters
        until(lambda: len(stored(broker, "clicks")) == counters.sent, "what was sent is stored")

    assert counters.accepted == counters.sent + counters.dropped
    assert counters.dropped == sum(drops)
