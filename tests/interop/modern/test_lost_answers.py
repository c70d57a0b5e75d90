"""The connection is cut after the append, before the answer: what each client then writes. See docs/modern-port.md."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaProducer

from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import decode_set
from tests.interop.modern.conftest import OPTIONS
from tests.interop.modern.proxy import Proxy

VALUES = [b"message %d" % n for n in range(20)]


@pytest.fixture(scope="module")
def behind_proxy() -> Iterator[tuple[BrokerProcess, Proxy]]:
    """A broker whose clients all come through a proxy."""
    proxy = Proxy()
    options = OPTIONS | {"modern.advertised.port": proxy.port, "num.partitions": 1}
    with BrokerProcess(options=options) as broker:
        assert broker.modern_port is not None
        proxy.target = broker.modern_port
        yield broker, proxy
    proxy.close()


def _confluent(bootstrap: str, topic: str, idempotent: bool) -> None:
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": idempotent, "retry.backoff.ms": 50}
    producer = Producer(settings | {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50})
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def _kafka_python(bootstrap: str, topic: str, idempotent: bool) -> None:
    retries = {} if idempotent else {"retries": 10}
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=idempotent, retry_backoff_ms=50, linger_ms=20, **retries
    )
    for future in [producer.send(topic, value) for value in VALUES]:
        future.get(60)
    producer.close()


def _aiokafka(bootstrap: str, topic: str, idempotent: bool) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=idempotent, retry_backoff_ms=50, linger_ms=20
        )
        await producer.start()
        await asyncio.gather(*[await producer.send(topic, value) for value in VALUES])
        await producer.stop()

    asyncio.run(asyncio.wait_for(run(), 120))


@pytest.mark.parametrize("client", [_confluent, _kafka_python, _aiokafka])
@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_answers_lost_after_the_append(
    behind_proxy: tuple[BrokerProcess, Proxy], unique: str, client: Callable[[str, str, bool], None], idempotent: bool
) -> None:
    """Twice the answer is lost: with idempotence every message is in the log once, without at least once (§14)."""
    broker, proxy = behind_proxy
    topic = f"cut-{unique}"
    proxy.cuts = proxy.n_cut + 2

    client(f"127.0.0.1:{proxy.port}", topic, idempotent)

    assert proxy.n_cut == proxy.cuts
    with BrokerConnection(broker.host, broker.port) as old:
        found = [message.payload for message in decode_set(old.fetch(topic, 0, 0))]
    if idempotent:
        assert found == VALUES
    else:
        assert len(found) > len(VALUES) and set(found) == set(VALUES)
