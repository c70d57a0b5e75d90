"""Put messages into a broker and get them out again, as fast as one thread can; and look at what is stored."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from random import Random

from classroom.claims.harness.nursery import wait_for
from classroom.claims.harness.room import ClaimBroker
from kafka2011.client import BrokerConnection
from kafka2011.wire import LATEST, FetchRequest, ProduceRequest, encode_set

MESSAGE_BYTES = 200
"""As in §5."""
FETCH_BYTES = 300_000
"""§3.1: "typically hundreds of kilobytes"."""
LAZY_FLUSH = {"log.flush.interval": 10_000, "log.default.flush.interval.ms": 50, "log.flush.for.readers.ms": 0}
LAZY_FLUSH |= {"log.default.flush.scheduler.interval.ms": 10}
"""As the benchmarks flush: every 10,000 messages or 50 ms."""
NEVER_FLUSH = {"log.flush.interval": 1_000_000_000, "log.default.flush.interval.ms": 86_400_000}
NEVER_FLUSH |= {"log.flush.for.readers.ms": 0}


def numbered(count: int, size: int = MESSAGE_BYTES, first: int = 0) -> list[bytes]:
    """Messages of one size that begin with their number."""
    filler = os.urandom(size)
    return [b"%012d" % number + filler[12:size] for number in range(first, first + count)]


def number_of(payload: bytes) -> int:
    """The number a message of ``numbered`` begins with."""
    return int(payload[:12])


def lengths(random: Random, count: int) -> list[int]:
    """Sizes of messages, most of them small, some large."""
    return [min(20_000, int(random.lognormvariate(5.0, 1.0)) + 1) for _ in range(count)]


def publish(broker: ClaimBroker, topic: str, payloads: Sequence[bytes], *, batch: int = 200, partition: int = 0) -> int:
    """Publish in sets of ``batch`` and wait until the broker has appended all; return where the log ends then."""
    with broker.connect() as connection:
        before = end_of(broker, topic, partition)
        size = 0
        for start in range(0, len(payloads), batch):
            data = encode_set(payloads[start : start + batch])
            size += len(data)
            connection.produce(topic, partition, data)
        wait_for(lambda: end_of(broker, topic, partition) >= before + size, f"{topic} is appended")
    return before + size


def fill(broker: ClaimBroker, topic: str, size: int, *, message_bytes: int = MESSAGE_BYTES) -> int:
    """Append at least ``size`` bytes as quickly as possible and wait until they are flushed; return the end."""
    data = encode_set(numbered(500, message_bytes))
    frame = ProduceRequest(topic, 0, data).encode()
    with broker.connect() as connection:
        end = connection.offsets(topic, 0, LATEST)[0]
        goal = end + -(-size // len(data)) * len(data)
        for _ in range((goal - end) // len(data)):
            connection.write(frame)
        # Looking at the files costs the broker nothing; it is asked when there is hope, and not too often.
        wait_for(lambda: stored(broker, topic) >= goal, f"{topic} is appended")
        while connection.offsets(topic, 0, LATEST)[0] < goal:
            time.sleep(0.03)
    return goal


def stored(broker: ClaimBroker, topic: str) -> int:
    """Bytes in the files of a log that begins at 0."""
    return sum(path.stat().st_size for path in broker.files(topic))


def chunks(
    connection: BrokerConnection, topic: str, start: int, end: int, *, partition: int = 0, size: int = FETCH_BYTES
) -> Iterator[memoryview]:
    """The bytes from ``start`` to ``end``, a fetch at a time."""
    while start < end:
        data = connection.fetch_view(FetchRequest(topic, partition, start, min(size, end - start)))
        if not data:
            time.sleep(0.005)
            continue
        start += len(data)
        yield data


def read_all(broker: ClaimBroker, topic: str, start: int, end: int, *, size: int = FETCH_BYTES) -> int:
    """Fetch everything and only count it."""
    with broker.connect() as connection:
        return sum(len(data) for data in chunks(connection, topic, start, end, size=size))


def end_of(broker: ClaimBroker, topic: str, partition: int = 0) -> int:
    """Where the log ends, flushed or not; 0 if there is none."""
    found = broker.state()["topics"].get(topic, {"partitions": {}})["partitions"].get(str(partition))
    return int(found["end_offset"]) if found else 0


def flushed_end(broker: ClaimBroker, topic: str, partition: int = 0) -> int:
    """How far consumers may read."""
    with broker.connect() as connection:
        return connection.offsets(topic, partition, LATEST)[0]
