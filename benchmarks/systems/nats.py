"""NATS JetStream with file storage, driven with pre-encoded publishes."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.system import Cell, Stopwatch, System, chunks, count_markers, free_port


class Nats(System):
    name = "NATS JetStream"
    note = "file storage; pre-encoded publishes without waiting for acks; push consumer without acks"

    def missing(self) -> str | None:
        return None if shutil.which("nats-server") else "nats-server is not installed"

    def cells(self, scale: float) -> list[Cell]:
        n = int(150_000 * scale)
        return [Cell("produce", 1, n), Cell("consume", 0, n)]

    def start(self, directory: Path) -> None:
        self.port = free_port()
        self.spawn(["nats-server", "-js", "-sd", str(directory), "-a", "127.0.0.1", "-p", str(self.port)], directory)
        self.wait_for_port(directory)

    def produce(self, topic: str, payloads: Sequence[bytes], batch: int) -> float:
        head = b"PUB %s %d\r\n" % (topic.encode(), len(payloads[0]))
        parts = [head + payload + b"\r\n" for payload in payloads]
        with _Talk(self.connect()) as talk:
            talk.ask(f"$JS.API.STREAM.CREATE.{topic}", {"name": topic, "subjects": [topic], "storage": "file"})
            watch = Stopwatch()
            for data in chunks(parts):
                talk.send(data)
            while talk.ask(f"$JS.API.STREAM.INFO.{topic}", {})["state"]["messages"] < len(parts):
                time.sleep(0.002)
            return watch.seconds()

    def consume(self, topic: str, messages: int) -> float:
        with _Talk(self.connect()) as talk:
            talk.send(b"SUB deliver.%s 2\r\n" % topic.encode())
            consumer = {"deliver_subject": f"deliver.{topic}", "ack_policy": "none", "deliver_policy": "all"}
            watch = Stopwatch()
            body = json.dumps({"stream_name": topic, "config": consumer}).encode()
            talk.send(b"PUB $JS.API.CONSUMER.CREATE.%s inbox.1 %d\r\n%s\r\n" % (topic.encode(), len(body), body))
            count_markers(talk.receive, messages)
        return watch.seconds()


class _Talk:
    """A connection that can ask the JetStream API."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""
        self.receive_line()
        self.send(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB inbox.1 1\r\nPING\r\n')
        while self.receive_line() != b"PONG":
            pass

    def __enter__(self) -> _Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def receive(self) -> bytes:
        data, self._buffer = self._buffer, b""
        return data or self._connection.recv(1 << 20)

    def receive_line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            self._buffer += self._connection.recv(1 << 16)
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    def ask(self, subject: str, body: object) -> dict[str, dict[str, int]]:
        data = json.dumps(body).encode()
        self.send(b"PUB %s inbox.1 %d\r\n%s\r\n" % (subject.encode(), len(data), data))
        while not (line := self.receive_line()).startswith(b"MSG inbox.1"):
            if line == b"PING":
                self.send(b"PONG\r\n")
        size = int(line.split()[-1])
        while len(self._buffer) < size + 2:
            self._buffer += self._connection.recv(1 << 16)
        answer, self._buffer = self._buffer[:size], self._buffer[size + 2 :]
        found: dict[str, dict[str, int]] = json.loads(answer)
        if "error" in found:
            raise RuntimeError(f"NATS refused {subject}: {found['error']}")
        return found
