"""The same driver against either broker: bytes made beforehand, so that no client is measured.

``python -m benchmarks.beside07.raw produce PORT …`` runs as a process of its own and prints one JSON line.
"""

from __future__ import annotations

import json
import math
import random
import selectors
import socket
import sys
import time

from kafka2011.client import BrokerConnection
from kafka2011.wire import Codec, FetchRequest, ProduceRequest, encode_set

POOL = 5_000


def payloads(kind: str, size: int, n: int = POOL) -> list[bytes]:
    """Payloads of ``size`` bytes, or lognormal around it; half text, so that they compress about as log lines do."""
    source = random.Random(7)
    sizes = [size] * n
    if kind == "lognormal":
        sizes = [max(1, min(20 * size, round(source.lognormvariate(math.log(size) - 0.32, 0.8)))) for _ in range(n)]
    words = [source.randbytes(4).hex().encode() for _ in range(400)]
    made = []
    for wanted in sizes:
        line = b" ".join(source.choices(words, k=wanted // 9 + 1))
        made.append(line[:wanted])
    return made


def produce(port: int, topic: str, kind: str, size: int, batch: int, n: int, connections: int, partitions: int) -> None:
    """``n`` messages in sets of ``batch``, over so many connections, to the partitions in turn."""
    pool = payloads(kind, size)
    sets = [encode_set(pool[at : at + batch]) for at in range(0, POOL - batch + 1, batch)]
    ends = [0] * partitions
    streams: list[list[bytes]] = [[] for _ in range(connections)]
    for i in range(n // batch):
        data, partition = sets[i % len(sets)], i % partitions
        ends[partition] += len(data)
        streams[i % connections].append(ProduceRequest(topic, partition, data).encode())
    blobs = [memoryview(b"".join(stream)) for stream in streams]
    with BrokerConnection("127.0.0.1", port) as asking:
        ends = [end + (asking.offsets(topic, p) or [0])[0] for p, end in enumerate(ends)]
        selector = selectors.DefaultSelector()
        for blob in blobs:
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_WRITE, [blob])
        began = time.perf_counter()
        left = len(blobs)
        while left:
            for key, _ in selector.select():
                assert isinstance(key.fileobj, socket.socket)
                try:
                    key.data[0] = key.data[0][key.fileobj.send(key.data[0][: 1 << 20]) :]
                except BlockingIOError:
                    continue
                if not key.data[0]:
                    selector.unregister(key.fileobj)
                    left -= 1
        for partition, end in enumerate(ends):
            while (asking.offsets(topic, partition) or [0])[0] < end:
                time.sleep(0.002)
        print(json.dumps({"seconds": time.perf_counter() - began, "messages": n // batch * batch}))


def fetch(port: int, topic: str, entry: int, fetch_size: int, n_bytes: int, readers: int) -> None:
    """Read ``n_bytes`` in fetches from everywhere in the log, over so many connections, looking at none of it."""
    with BrokerConnection("127.0.0.1", port) as asking:
        end = asking.offsets(topic, 0)[0]
    source = random.Random(3)
    selector = selectors.DefaultSelector()
    buffer = bytearray(1 << 20)

    def ask(connection: socket.socket) -> None:
        offset = source.randrange(0, end - fetch_size)
        connection.send(FetchRequest(topic, 0, offset, fetch_size).encode())

    left: dict[socket.socket, int] = {}
    for _ in range(readers):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)
        left[connection] = 0
        ask(connection)
    began, got = time.perf_counter(), 0
    while got < n_bytes:
        for key, _ in selector.select():
            connection = key.fileobj  # type: ignore[assignment]
            try:
                count = connection.recv_into(buffer)
            except BlockingIOError:
                continue
            if not count:
                raise SystemExit("the broker closed the connection")
            got += count
            if not left[connection]:
                left[connection] = 4 + int.from_bytes(buffer[:4], "big")  # shorter at the end of a segment
            left[connection] -= count
            if not left[connection]:
                ask(connection)
    print(json.dumps({"seconds": time.perf_counter() - began, "messages": got / entry}))


def fill(port: int, topic: str, kind: str, size: int, n: int, codec: str) -> None:
    """Something to read: ``n`` messages in sets of 50, each a wrapper if a codec is named."""
    pool = payloads(kind, size)
    chosen = Codec.GZIP if codec == "gzip" else Codec.NONE
    sets = [encode_set(pool[at : at + 50], codec=chosen) for at in range(0, POOL, 50)]
    with BrokerConnection("127.0.0.1", port) as connection:
        end = 0
        for i in range(n // 50):
            connection.produce(topic, 0, sets[i % len(sets)])
            end += len(sets[i % len(sets)])
        while (connection.offsets(topic, 0) or [0])[0] < end:
            time.sleep(0.01)
    print(json.dumps({"seconds": 1, "messages": n}))


def latency(port: int, topic: str, rate: int, seconds: float) -> None:
    """From sending a message to reading it, by a reader that polls every 2 ms; p50 and p99 in milliseconds."""
    waits: list[float] = []
    with BrokerConnection("127.0.0.1", port) as writer, BrokerConnection("127.0.0.1", port) as reader:
        offset = (reader.offsets(topic, 0) or [0])[0]
        began = time.perf_counter()
        sent = 0
        sent_at: dict[int, float] = {}
        end = offset
        message = encode_set([b"x" * 200])
        while len(waits) < rate * seconds and time.perf_counter() - began < seconds + 5:
            due = min(int((time.perf_counter() - began) * rate), int(rate * seconds))
            for _ in range(due - sent):
                writer.produce(topic, 0, message)
                end += len(message)
                sent_at[end] = time.perf_counter()
            sent = max(sent, due)
            data = reader.fetch(topic, 0, offset, 300 << 10)
            now = time.perf_counter()
            for _ in range(len(data) // len(message)):
                offset += len(message)
                waits.append(now - sent_at.pop(offset))
            if not data:
                time.sleep(0.002)
    waits.sort()
    p50, p99 = (1000 * waits[int(len(waits) * q)] for q in (0.5, 0.99))
    print(json.dumps({"seconds": seconds, "messages": len(waits), "p50_ms": p50, "p99_ms": p99}))


def main(what: str, *words: str) -> None:
    """Run one of the functions above with words from the command line."""
    arguments = [int(word) if word.lstrip("-").isdigit() else word for word in words]
    {"produce": produce, "fetch": fetch, "fill": fill, "latency": latency}[what](*arguments)  # type: ignore[operator]


if __name__ == "__main__":
    main(*sys.argv[1:])
