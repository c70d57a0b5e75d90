"""RabbitMQ, one of the two systems the paper compares with: a durable queue and persistent messages.

The driver speaks AMQP 0-9-1 with frames encoded in advance.
"""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.system import Cell, Stopwatch, System, chunks, count_markers, free_port

_SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class RabbitMQ(System):
    name = "RabbitMQ"
    note = "durable queue, persistent messages, no confirms; pre-encoded AMQP; consumer without acks"

    def missing(self) -> str | None:
        return None if _SERVER.exists() else "rabbitmq-server is not installed"

    def cells(self, scale: float) -> list[Cell]:
        n = int(25_000 * scale)
        return [Cell("produce", 1, n), Cell("consume", 0, n)]

    def start(self, directory: Path) -> None:
        self.port = free_port()
        self._epmd = free_port()
        environ = {
            "HOME": str(directory),
            "ERL_EPMD_PORT": str(self._epmd),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"bench{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        self.spawn([str(_SERVER)], directory, environ)
        self.wait_for_port(directory)

    def stop(self) -> None:
        super().stop()
        epmd = shutil.which("epmd")
        if epmd is not None:  # the one we caused to start, on its own port
            subprocess.run([epmd, "-port", str(self._epmd), "-kill"], capture_output=True, check=False)

    def produce(self, topic: str, payloads: Sequence[bytes], batch: int) -> float:
        name = topic.encode()
        publish = _method(1, 60, 40, b"\0\0" + _short(b"") + _short(name) + b"\0")
        header = _frame(2, 1, struct.pack(">HHQHB", 60, 0, len(payloads[0]), 0x1000, 2))  # delivery mode 2: persistent
        parts = [publish + header + _frame(3, 1, payload) for payload in payloads]
        with self._open() as connection:
            _declare(connection, name)
            watch = Stopwatch()
            for data in chunks(parts):
                connection.sendall(data)
            while _declare(connection, name) < len(parts):
                pass
            return watch.seconds()

    def consume(self, topic: str, messages: int) -> float:
        with self._open() as connection:
            watch = Stopwatch()
            no_ack = 2
            arguments = b"\0\0" + _short(topic.encode()) + _short(b"") + bytes([no_ack]) + struct.pack(">I", 0)
            connection.sendall(_method(1, 60, 20, arguments))
            count_markers(lambda: connection.recv(1 << 20), messages)
        return watch.seconds()

    def _open(self) -> socket.socket:
        connection = self.connect()
        connection.sendall(b"AMQP\0\0\x09\x01")
        _expect(connection, 10, 10)
        answer = struct.pack(">I", 0) + _short(b"PLAIN") + struct.pack(">I", 12) + b"\0guest\0guest" + _short(b"en_US")
        connection.sendall(_method(0, 10, 11, answer))
        channels, frame_max, _ = struct.unpack_from(">HIH", _expect(connection, 10, 30), 4)
        connection.sendall(_method(0, 10, 31, struct.pack(">HIH", channels, frame_max, 0)))
        connection.sendall(_method(0, 10, 40, _short(b"/") + b"\0\0"))
        _expect(connection, 10, 41)
        connection.sendall(_method(1, 20, 10, b"\0"))
        _expect(connection, 20, 11)
        return connection


def _declare(connection: socket.socket, queue: bytes) -> int:
    """Declare a durable queue; return the messages in it. The answer follows everything published before."""
    durable = 2
    connection.sendall(_method(1, 50, 10, b"\0\0" + _short(queue) + bytes([durable]) + struct.pack(">I", 0)))
    body = _expect(connection, 50, 11)
    count: int = struct.unpack_from(">I", body, 5 + body[4])[0]
    return count


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def _method(channel: int, group: int, method: int, arguments: bytes) -> bytes:
    return _frame(1, channel, struct.pack(">HH", group, method) + arguments)


def _short(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def _expect(connection: socket.socket, group: int, method: int) -> bytes:
    """Read frames until the method comes; return its payload."""
    while True:
        kind, _, size = struct.unpack(">BHI", _exactly(connection, 7))
        payload = _exactly(connection, size + 1)[:-1]
        if kind == 1:
            found = struct.unpack_from(">HH", payload)
            if found == (group, method):
                return payload
            if found in ((10, 50), (20, 40)):
                raise RuntimeError(f"RabbitMQ closed: {payload!r}")


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise RuntimeError("RabbitMQ hung up")
        data += more
    return data
