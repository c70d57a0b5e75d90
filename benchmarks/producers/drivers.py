"""One producer, one run, in a process of its own: prints records, seconds and CPU seconds as a line of JSON.

``python -m benchmarks.producers.drivers ours PORT TOPIC RECORDS SIZE KEYED`` with each client's own defaults for
batches, idempotence on and acks=all for all of them. The clock runs from the first record after a warm-up to the last
acknowledgement.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

Made = Iterator[tuple[bytes, bytes | None]]


def records(n: int, size: int, keyed: bool) -> Made:
    """Values of so many bytes; keys of a thousand members."""
    values = [os.urandom(size) for _ in range(100)]
    keys = [b"member%d" % number if keyed else None for number in range(1000)]
    for number in range(n):
        yield values[number % 100], keys[number % 1000]


def ours(bootstrap: str, topic: str, made: Made, batch: int = 0) -> Iterator[None]:
    """since2011.producer; with ``batch``, transactions of so many records."""
    from since2011.producer import Producer

    settings: dict[str, object] = {"bootstrap.servers": bootstrap}
    if batch:
        settings["transactional.id"] = f"bench-{topic}"
    producer = Producer(settings)
    if batch:
        producer.init_transactions()
        producer.begin_transaction()
    producer.send(topic, b"warm").result(60)
    yield
    for number, (value, key) in enumerate(made):
        if batch and number % batch == 0:
            producer.commit_transaction()
            producer.begin_transaction()
        producer.send(topic, value, key)
    if batch:
        producer.commit_transaction()
    producer.flush()


def kafka_python(bootstrap: str, topic: str, made: Made, batch: int = 0) -> Iterator[None]:
    """kafka-python."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, acks="all")
    producer.send(topic, b"warm").get(60)
    yield
    for value, key in made:
        producer.send(topic, value, key)
    producer.flush()


def aiokafka(bootstrap: str, topic: str, made: Made, batch: int = 0) -> Iterator[None]:
    """aiokafka, in one event loop."""
    from aiokafka import AIOKafkaProducer

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)

    async def start() -> Any:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, acks="all")
        await producer.start()
        await producer.send_and_wait(topic, b"warm")
        return producer

    async def send(producer: Any) -> None:
        for value, key in made:
            await producer.send(topic, value, key)
        await producer.flush()

    producer = loop.run_until_complete(start())
    yield
    loop.run_until_complete(send(producer))
    loop.run_until_complete(producer.stop())


def confluent(bootstrap: str, topic: str, made: Made, batch: int = 0) -> Iterator[None]:
    """confluent-kafka: librdkafka, in C."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all"})
    producer.produce(topic, b"warm")
    producer.flush(60)
    yield
    for value, key in made:
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.01)
    if producer.flush(300):
        raise SystemExit("not everything was taken")


CLIENTS: dict[str, Callable[..., Iterator[None]]] = {
    "ours": ours,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "confluent-kafka": confluent,
}


def main(client: str, port: str, topic: str, n: str, size: str, keyed: str, batch: str = "0") -> None:
    """Run one and print what it took."""
    made = records(int(n), int(size), keyed == "True")
    run = CLIENTS[client](f"127.0.0.1:{port}", topic, made, int(batch))
    next(run)
    began, cpu = time.perf_counter(), time.process_time()
    for _ in run:
        raise AssertionError("a driver yields once")
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    print(json.dumps({"records": int(n), "seconds": seconds, "cpu": used}), flush=True)
    os._exit(0)  # some clients take long to leave


if __name__ == "__main__":
    main(*sys.argv[1:])
