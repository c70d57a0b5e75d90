"""Redis streams with the append-only file on, driven with pre-encoded commands, pipelined."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmarks.system import Cell, Stopwatch, System, chunks, count_markers, free_port

_PAGE = 1000


class Redis(System):
    name = "Redis streams"
    note = "appendonly yes, appendfsync everysec; pre-encoded, pipelined XADD and XREAD"

    def missing(self) -> str | None:
        return None if shutil.which("redis-server") else "redis-server is not installed"

    def cells(self, scale: float) -> list[Cell]:
        n = int(200_000 * scale)
        return [Cell("produce", 50, n), Cell("consume", 0, n)]

    def start(self, directory: Path) -> None:
        self.port = free_port()
        options = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--dir", str(directory)]
        self.spawn(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", *options], directory)
        self.wait_for_port(directory)

    def produce(self, topic: str, payloads: Sequence[bytes], batch: int) -> float:
        commands = [_command(b"XADD", topic.encode(), b"0-%d" % i, b"p", p) for i, p in enumerate(payloads, 1)]
        with self.connect() as connection:
            watch = Stopwatch()
            for data in chunks(commands, batch):
                connection.sendall(data)
                answers = 0
                while answers < min(batch, data.count(b"XADD")):
                    answers += connection.recv(1 << 20).count(b"$")
            return watch.seconds()

    def consume(self, topic: str, messages: int) -> float:
        page = b"%d" % _PAGE
        asks = [
            _command(b"XREAD", b"COUNT", page, b"STREAMS", topic.encode(), b"0-%d" % start)
            for start in range(0, messages, _PAGE)
        ]
        with self.connect() as connection:
            watch = Stopwatch()
            connection.sendall(b"".join(asks))
            count_markers(lambda: connection.recv(1 << 20), messages)
        return watch.seconds()


def _command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
