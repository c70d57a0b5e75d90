"""The way out: order, back-pressure, and letting go of files."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.broker.sendfile import CopyingOutbox, Outbox
from kafka2011.wire.file_range import FileRange


class Range:
    """A file range that remembers whether it was closed."""

    def __init__(self, path: Path, position: int, size: int) -> None:
        self.fd = os.open(path, os.O_RDONLY)
        self.position, self.size = position, size
        self.closed = False

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            os.close(self.fd)


class FakeTransport:
    """A transport whose reactor turns when the test says so; ``write`` keeps what Twisted would buffer."""

    def __init__(self, handle: socket.socket) -> None:
        self.handle = handle
        self.producer: Outbox | None = None
        self.buffered: list[bytes] = []

    def getHandle(self) -> socket.socket:
        return self.handle

    def registerProducer(self, producer: object, streaming: bool) -> None:
        assert isinstance(producer, Outbox)
        assert self.producer is None and not streaming
        self.producer = producer
        producer.resumeProducing()  # as Twisted does with a pull producer

    def unregisterProducer(self) -> None:
        self.producer = None

    def startWriting(self) -> None: ...
    def pauseProducing(self) -> None: ...
    def resumeProducing(self) -> None: ...
    def loseConnection(self) -> None: ...
    def abortConnection(self) -> None: ...

    def write(self, data: bytes) -> None:
        self.buffered.append(data)

    def turn(self) -> None:
        """The socket takes bytes again."""
        if self.producer is not None:
            self.producer.resumeProducing()


class Wire:
    """An outbox, its transport, and the reader at the other end."""

    def __init__(self, kind: type[Outbox] = Outbox) -> None:
        self.ours, self.reader = socket.socketpair()
        self.ours.setblocking(False)
        self.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.transport = FakeTransport(self.ours)
        self.drained = 0
        self.broken: list[str] = []
        self.sent: dict[str, int] = {}
        self.outbox = kind(self.transport, drained=self._drained, broken=self.broken.append, sent=self._sent)

    def _drained(self) -> None:
        self.drained += 1

    def _sent(self, path: str, size: int) -> None:
        self.sent[path] = self.sent.get(path, 0) + size

    def read_all(self, size: int) -> bytes:
        """Read slowly while the reactor turns."""
        data = b""
        self.reader.settimeout(60)
        while len(data) < size:
            data += self.reader.recv(1000)
            self.transport.turn()
        return data


@pytest.fixture
def wire() -> Iterator[Wire]:
    one = Wire()
    yield one
    one.outbox.close()
    one.ours.close()
    one.reader.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "segment"
    path.write_bytes(os.urandom(200_000))
    return path


def test_file_bytes_never_overtake_the_head(wire: Wire, file: Path) -> None:
    """The head of an answer is on the wire before the file's bytes, also when the socket is full (§3.1)."""
    data = file.read_bytes()
    filler = b"f" * 300_000
    wire.outbox.send([filler])
    assert wire.outbox.busy
    parts: list[bytes | FileRange] = [b"HEAD-1", Range(file, 10, 150_000), b"HEAD-2", Range(file, 0, 7)]
    wire.outbox.send(parts)
    expected = filler + b"HEAD-1" + data[10:150_010] + b"HEAD-2" + data[:7]

    assert wire.read_all(len(expected)) == expected
    assert not wire.outbox.busy
    assert wire.drained == 1
    assert wire.sent == {"sendfile": 150_007}
    assert wire.transport.buffered == []
    assert all(part.closed for part in parts if isinstance(part, Range))


def test_a_small_answer_leaves_at_once_and_in_one_piece(wire: Wire, file: Path) -> None:
    """A small answer is sent without waiting for the reactor, head and body together.

    See docs/paper-vs-code.md, prozess.
    """
    wire.outbox.send([b"HEAD", Range(file, 0, 100)])

    assert not wire.outbox.busy
    assert wire.drained == 0
    assert wire.transport.producer is None
    assert wire.read_all(104) == b"HEAD" + file.read_bytes()[:100]


def test_a_file_that_is_too_short_breaks_the_connection(wire: Wire, file: Path) -> None:
    """If a file ends before what the head promised, the connection is dropped instead of going out of step."""
    part = Range(file, 199_900, 500)
    wire.outbox.send([b"HEAD", part])

    assert wire.broken == ["the file ends 400 bytes before the range that was promised"]
    assert part.closed and not wire.outbox.busy


def test_a_lost_connection_lets_go_of_the_files(wire: Wire, file: Path) -> None:
    """When the reader goes away in the middle every file is closed and the connection reported."""
    parts = [Range(file, 0, 200_000), Range(file, 0, 200_000)]
    wire.outbox.send(parts)
    assert wire.outbox.busy
    wire.reader.close()
    wire.transport.turn()

    assert len(wire.broken) == 1 and "cannot send" in wire.broken[0]
    assert [part.closed for part in parts] == [True, True]


def test_copying_waits_for_its_reader(file: Path) -> None:
    """Over TLS the bytes are copied piece by piece, the next one only when Twisted asks; the order is the same."""
    wire = Wire(CopyingOutbox)
    wire.outbox.send([b"small"])
    assert wire.outbox.busy, "not done before Twisted asks for more: an unread answer holds the next back"
    wire.transport.turn()
    assert (wire.outbox.busy, wire.drained, wire.transport.buffered) == (False, 1, [b"small"])
    part = Range(file, 5, 150_000)
    wire.outbox.send([b"HEAD", part])
    sizes = []
    while wire.outbox.busy:
        sizes.append(sum(map(len, wire.transport.buffered)))
        wire.transport.turn()

    assert b"".join(wire.transport.buffered) == b"smallHEAD" + file.read_bytes()[5:150_005]
    assert all(after - before <= 65536 for before, after in itertools.pairwise(sizes))
    assert (wire.drained, wire.sent, part.closed) == (2, {"copy": 150_000}, True)
    wire.ours.close()
    wire.reader.close()
