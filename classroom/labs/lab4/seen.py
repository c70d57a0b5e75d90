"""The tests of lab 4 that students see. They run in the grader's process, as clients of your server."""

from __future__ import annotations

import select
import socket
import struct
import time
from pathlib import Path

from classroom.labs.entries import message
from classroom.labs.lab import Bench, Failed, Tests, expect
from classroom.labs.sandbox import Listener, Sandbox

SEEN = Tests(seen=True)
_PATIENCE_S = 6.0


def fetch(topic: str, partition: int, offset: int, max_bytes: int) -> bytes:
    """The bytes of a fetch request."""
    name = topic.encode()
    body = struct.pack(">HH", 1, len(name)) + name + struct.pack(">iqi", partition, offset, max_bytes)
    return struct.pack(">I", len(body)) + body


class Server:
    """The student's server on some directory, and clients of it."""

    def __init__(self, bench: Bench, directory: Path, scratch: Path | None = None) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self.student: Sandbox = bench.student(scratch or directory, keep=[self._listener.fileno()])
        self.student.__enter__()
        self.student.begin("serve", Listener(self._listener.fileno()), str(directory))
        self._listener.close()

    def connect(self) -> socket.socket:
        """A new connection."""
        client = socket.create_connection(("127.0.0.1", self.port), timeout=_PATIENCE_S)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def answer(self, client: socket.socket) -> tuple[int, bytes]:
        """The next answer: error and bytes."""
        size, error = struct.unpack(">IH", self.exactly(client, 6))
        if not 2 <= size <= 1 << 28:
            raise Failed(f"the answer's size field is {size}")
        return error, self.exactly(client, size - 2)

    def ask(self, *request: object) -> tuple[int, bytes]:
        """One fetch on a connection of its own."""
        with self.connect() as client:
            client.sendall(fetch(*request))  # type: ignore[arg-type]
            return self.answer(client)

    def exactly(self, client: socket.socket, n: int) -> bytes:
        """Read that many bytes; fail if the server has ended, hangs up or takes too long."""
        got = bytearray()
        deadline = time.monotonic() + _PATIENCE_S
        while len(got) < n:
            lines = [client.fileno(), self.student.fileno()]
            ready, _, _ = select.select(lines, [], [], max(0.0, deadline - time.monotonic()))
            if client.fileno() in ready:
                try:
                    part = client.recv(n - len(got))
                except ConnectionError:
                    part = b""
                if not part:
                    raise Failed(f"the server hung up after {len(got)} of {n} bytes of its answer")
                got += part
            elif ready:
                self.student.ended()
            else:
                raise Failed(f"no answer within {_PATIENCE_S:g} s: {len(got)} of {n} bytes came")
        return bytes(got)


def partition(directory: Path, name: str, *segments: bytes) -> bytes:
    """Write a partition's segment files; all its bytes."""
    (directory / name).mkdir()
    at = 0
    for data in segments:
        (directory / name / f"{at:020}.kafka").write_bytes(data)
        at += len(data)
    return b"".join(segments)


@SEEN.add(
    points=12,
    hint="Read four bytes, then as many as they say. struct.unpack_from('>HH', ...) reads kind and length of the name.",
)
def one_fetch(bench: Bench) -> None:
    """A fetch from offset 0 is answered with size, error 0 and the bytes of the file."""
    directory = bench.directory()
    data = partition(directory, "clicks-0", message(b"one") + message(b"two"))
    expect(Server(bench, directory).ask("clicks", 0, 0, 1000), (0, data), "a fetch of clicks-0 from offset 0")


@SEEN.add(
    points=8, hint="n = min(what is left of the file, the request's limit). It may end in the middle of a message."
)
def at_most_so_many_bytes(bench: Bench) -> None:
    """The answer is cut where the request says, in the middle of a message or not."""
    directory = bench.directory()
    data = partition(directory, "clicks-0", message(b"one") + message(b"two"))
    server = Server(bench, directory)
    expect(server.ask("clicks", 0, 0, 5), (0, data[:5]), "a fetch of 5 bytes")
    expect(server.ask("clicks", 0, 12, 20), (0, data[12:]), "a fetch from offset 12")


@SEEN.add(points=10, hint="An error is an answer with size 2 and the number; the connection stays open.")
def errors_are_numbers(bench: Bench) -> None:
    """Out of range is error 1, an unknown topic or partition error 3, and the end of the log no error."""
    directory = bench.directory()
    data = partition(directory, "clicks-0", message(b"one"))
    server = Server(bench, directory)
    expect(server.ask("clicks", 0, len(data), 100), (0, b""), "a fetch at the end")
    expect(server.ask("clicks", 0, len(data) + 1, 100), (1, b""), "a fetch behind the end")
    expect(server.ask("clicks", 1, 0, 100), (3, b""), "a fetch of a partition that is not there")
    expect(server.ask("views", 0, 0, 100), (3, b""), "a fetch of a topic that is not there")


@SEEN.add(points=10, hint="A loop per connection: read a request, answer it, until the client hangs up.")
def several_requests_on_one_connection(bench: Bench) -> None:
    """Requests that are sent together are answered one after the other, in order."""
    directory = bench.directory()
    data = partition(directory, "clicks-0", b"".join(message(b"%d" % i) for i in range(10)))
    server = Server(bench, directory)
    with server.connect() as client:
        client.sendall(b"".join(fetch("clicks", 0, 10 * i, 10) for i in range(10)))
        for i in range(10):
            expect(server.answer(client), (0, data[10 * i : 10 * i + 10]), f"answer {i} of ten requests sent together")


@SEEN.add(points=8, hint="List the file names, sort them, and take the last that begins at or before the offset.")
def the_right_segment(bench: Bench) -> None:
    """With three files the answer comes from the one that holds the offset, and ends with that file."""
    directory = bench.directory()
    pieces = [message(b"a" * 20), message(b"b" * 30), message(b"c")]
    partition(directory, "clicks-0", *pieces)
    server = Server(bench, directory)
    for offset, piece in ((0, pieces[0]), (29, pieces[1]), (68, pieces[2])):
        expect(server.ask("clicks", 0, offset, 1000), (0, piece), f"a fetch from offset {offset}, where a file begins")
    expect(server.ask("clicks", 0, 30, 1000), (0, pieces[1][1:]), "a fetch from the middle of the second file")
