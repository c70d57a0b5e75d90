"""Each side with its own clients: the producer, the consumer by offset, the consumer in a group, chunks.

``python -m benchmarks.beside07.clients produce PORT …`` runs ours and prints one JSON line; 0.7's are the performance
tools it came with, of whose reports the second half counts, when the virtual machine is warm.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from itertools import cycle, islice

from benchmarks.beside07.brokers import java
from benchmarks.beside07.raw import payloads
from consumers import Consumer
from consumers.simple import SimpleConsumer
from kafka2011.child import die_with_parent
from kafka2011.producer import Producer
from kafka2011.wire import Codec


def produce(port: int, topic: str, kind: str, n: int, codec: str) -> None:
    """Our producer: sets of 50 or, compressed, 200 messages."""
    batch = 50 if codec == "none" else 200
    items = list(islice(cycle(payloads(kind, 200)), n))
    with SimpleConsumer("127.0.0.1", port) as asking:
        before = asking.latest(topic, 0)
        began = time.perf_counter()
        with Producer(f"127.0.0.1:{port}", batch_size=batch, codec=Codec[codec.upper()]) as producer:
            for start in range(0, n, batch):
                producer.send(topic, items[start : start + batch])
        size = -1
        while (now := asking.latest(topic, 0)) != size or now == before:
            size = now
            time.sleep(0.02)
        print(json.dumps({"seconds": time.perf_counter() - began - 0.02, "messages": n}))


def consume(port: int, topic: str, n: int) -> None:
    """Our consumer by offset, every message looked at."""
    with SimpleConsumer("127.0.0.1", port) as consumer:
        began = time.perf_counter()
        seen = size = 0
        for message in consumer.messages(topic, 0, 0, follow=False):
            seen += 1
            size += len(message.payload)
        print(json.dumps({"seconds": time.perf_counter() - began, "messages": seen}))
        assert seen == n, seen


def group(zookeeper: str, topic: str, n: int, how: str) -> None:
    """Our consumer in a group (Algorithm 1), from its first message to its last: messages, chunks, or views."""
    consumer = Consumer(zookeeper, f"bench-{time.time_ns()}", timeout_s=30)
    (stream,) = consumer.create_message_streams(topic, 1)
    began, seen, size = 0.0, 0, 0
    if how == "messages":
        for message in stream:
            began = began or time.perf_counter()
            seen += 1
            size += len(message.payload)
            if seen == n:
                break
    else:
        for chunk in stream.chunks():
            began = began or time.perf_counter()
            seen += len(chunk)
            if how == "views":
                for view in chunk.payloads():
                    size += len(view)
            if seen >= n:
                break
    print(json.dumps({"seconds": time.perf_counter() - began, "messages": seen}))
    consumer.close()


def real(tool: str, port: int, zookeeper: str, topic: str, n: int, codec: str = "none") -> dict[str, float]:
    """One of 0.7's own performance tools; the rate of the second half of its intervals."""
    every = ["--messages", str(n), "--show-detailed-stats", "--hide-header", "--topic", topic]
    interval = str(max(n // 10, 1))
    words = {
        "produce": [
            "ProducerPerformance",
            "--brokerinfo",
            f"broker.list=0:127.0.0.1:{port}",
            "--batch-size",
            "50" if codec == "none" else "200",
            "--message-size",
            "200",
            "--threads",
            "1",
            "--async",
            "--compression-codec",
            "0" if codec == "none" else "1",
        ],
        "consume": ["SimpleConsumerPerformance", "--server", f"kafka://127.0.0.1:{port}", "--fetch-size", "1048576"],
        "group": ["ConsumerPerformance", "--zookeeper", zookeeper, "--threads", "1", "--group", f"g{time.time_ns()}"],
    }[tool]
    done = subprocess.run(
        [*java(), f"kafka.perf.{words[0]}", *words[1:], *every, "--reporting-interval", interval],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=die_with_parent,
    )
    rates = []
    for line in done.stdout.splitlines():
        fields = [field.strip() for field in line.split(",")]
        try:
            rates.append(float(fields[-1]))
        except ValueError:
            continue
    if len(rates) < 2:
        raise RuntimeError(f"0.7's {words[0]} said: {(done.stdout + done.stderr)[-600:]}")
    rate = statistics.median(rates[len(rates) // 2 :])
    return {"seconds": n / rate, "messages": n}


def main(what: str, *words: str) -> None:
    """Run one of our clients with words from the command line."""
    arguments = [int(word) if word.isdigit() else word for word in words]
    {"produce": produce, "consume": consume, "group": group}[what](*arguments)  # type: ignore[operator]


if __name__ == "__main__":
    main(*sys.argv[1:])
