"""The same clients against either broker: librdkafka, Kafka's own producer in Java, and frames made beforehand.

``python -m benchmarks.beside41.drivers raw_produce PORT …`` runs as a process of its own and prints one JSON line.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.beside41.brokers import java
from since2011.wire.codec import ApiKey, Struct, encode_request
from since2011.wire.records import Record, encode_records

SIZE = 200
IN_FLIGHT = 5


def create(port: int, topic: str, partitions: int) -> None:
    """Make a topic and wait until it is there."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    began = time.perf_counter()
    for future in admin.create_topics([NewTopic(topic, partitions, 1)], operation_timeout=60).values():
        future.result(90)
    _say(time.perf_counter() - began, partitions)


def librdkafka_produce(port: int, topic: str, n: int, batch: int) -> None:
    """confluent-kafka, acks of the leader; ``batch`` messages at most in a batch, 0: its default."""
    settings: dict[str, object] = {"bootstrap.servers": f"127.0.0.1:{port}", "acks": 1}
    settings |= {"queue.buffering.max.messages": 1_000_000}
    if batch:
        settings["batch.num.messages"] = batch
    producer = Producer(settings)
    payload = os.urandom(SIZE)
    producer.list_topics(topic, timeout=30)
    began = time.perf_counter()
    for number in range(n):
        while True:
            try:
                producer.produce(topic, payload, partition=0)
                break
            except BufferError:
                producer.poll(0.01)
        if not number % 1000:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("not everything was taken")
    _say(time.perf_counter() - began, n)


def librdkafka_consume(port: int, topic: str, n: int) -> None:
    """confluent-kafka, one partition from its beginning, 10,000 messages at a time."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": f"g{time.time_ns()}",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 1 << 20,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen, began = 0, 0.0
    while seen < n:
        messages = consumer.consume(10_000, timeout=30)
        began = began or time.perf_counter()
        seen += len(messages)
        if not messages:
            raise SystemExit(f"{seen} of {n} came")
    _say(time.perf_counter() - began, seen)
    consumer.close()


def java_produce(port: int, topic: str, n: int, batch_bytes: int) -> None:
    """Kafka's own performance tool."""
    properties = [f"bootstrap.servers=127.0.0.1:{port}", "acks=1", f"batch.size={batch_bytes}"]
    words = ["--topic", topic, "--num-records", str(n), "--record-size", str(SIZE), "--throughput", "-1"]
    done = subprocess.run(
        [*java(), "org.apache.kafka.tools.ProducerPerformance", *words, "--producer-props", *properties],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if "records/sec" in line]
    if not said:
        raise SystemExit((done.stdout + done.stderr)[-600:])
    _say(n / float(said[-1].split(" records/sec")[0].split(",")[-1]), n)


def raw_produce(port: int, topic: str, n: int, batch: int) -> None:
    """Produce requests made beforehand, acks of the leader, so many in flight."""
    now_ms = time.time_ns() // 1_000_000  # an older time would be past retention
    records = [Record(i, now_ms, None, os.urandom(SIZE)) for i in range(batch)]
    body = Struct(
        transactional_id=None,
        acks=1,
        timeout_ms=30_000,
        topics=[Struct(name=topic, partitions=[Struct(index=0, records=encode_records(records))])],
    )
    frame = b"".join(encode_request(ApiKey.PRODUCE, 9, 1, "bench", body))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        todo = n // batch
        began = time.perf_counter()
        sent = answered = 0
        held = b""
        while answered < todo:
            room = min(IN_FLIGHT - (sent - answered), todo - sent)
            if room:
                connection.sendall(frame * room)
                sent += room
            held += connection.recv(1 << 16)
            while len(held) >= 4 and len(held) >= 4 + int.from_bytes(held[:4], "big"):
                held = held[4 + int.from_bytes(held[:4], "big") :]
                answered += 1
        _say(time.perf_counter() - began, todo * batch)


def raw_fetch(port: int, topic: str, n_bytes: int, fetch_size: int) -> None:
    """Fetches of the first bytes again and again, looking at none of them."""
    body = Struct(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=fetch_size,
        isolation=0,
        session_id=0,
        session_epoch=-1,
        topics=[Struct(name=topic, partitions=[Struct(index=0, offset=0, max_bytes=fetch_size)])],
        forgotten=[],
        rack="",
    )
    frame = b"".join(encode_request(ApiKey.FETCH, 11, 1, "bench", body))
    buffer = bytearray(1 << 20)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        began = time.perf_counter()
        got = 0
        while got < n_bytes:
            connection.sendall(frame)
            left = -1
            while left:
                select.select([connection], [], [])
                count = connection.recv_into(buffer)
                if not count:
                    raise SystemExit("the broker closed the connection")
                if left < 0:
                    left = 4 + int.from_bytes(buffer[:4], "big")
                got += count
                left -= count
        _say(time.perf_counter() - began, got / (SIZE + 10))


def _say(seconds: float, messages: float) -> None:
    print(json.dumps({"seconds": seconds, "messages": messages}))


def main(what: str, *words: str) -> None:
    """Run one of the functions above with words from the command line."""
    arguments = [int(word) if word.isdigit() else word for word in words]
    functions = (create, librdkafka_produce, librdkafka_consume, java_produce, raw_produce, raw_fetch)
    {function.__name__: function for function in functions}[what](*arguments)  # type: ignore[operator]


if __name__ == "__main__":
    main(*sys.argv[1:])
