"""Lab 4, a model solution: a server for fetch requests, one thread for each connection."""

from __future__ import annotations

import os
import re
import socket
import struct
import threading
from typing import BinaryIO

OK, OUT_OF_RANGE, UNKNOWN = 0, 1, 3
FETCH, MULTIFETCH = 1, 2
SMALLEST, LARGEST = 20, 100_000
PLAIN_NAME = re.compile(rb"[A-Za-z0-9_-]+")


class NotAFetch(Exception):
    """What came is not a fetch request."""


class Piece:
    """What one fetch is answered with: an error, or a range of a file."""

    def __init__(self, error: int, file: BinaryIO | None = None, start: int = 0, n: int = 0) -> None:
        self.error, self.file, self.start, self.n = error, file, start, n

    def head(self) -> bytes:
        """Size and error."""
        return struct.pack(">IH", 2 + self.n, self.error)

    def send(self, client: socket.socket) -> None:
        """Head, and the bytes by the kernel."""
        client.sendall(self.head())
        if self.file is None:
            return
        with self.file:
            at, end = self.start, self.start + self.n
            while at < end:
                at += os.sendfile(client.fileno(), self.file.fileno(), at, end - at)


def serve(listener: socket.socket, directory: str) -> None:
    """Accept connections and answer fetch requests, for ever."""
    while True:
        client, _ = listener.accept()
        threading.Thread(target=talk, args=(client, directory), daemon=True).start()


def talk(client: socket.socket, directory: str) -> None:
    """Answer the requests of one connection in order, until it ends or sends rubbish."""
    with client:
        try:
            while True:
                (size,) = struct.unpack(">I", exactly(client, 4))
                if not SMALLEST <= size <= LARGEST:
                    return
                kind, asked = parsed(exactly(client, size))
                pieces = [found(directory, *one) for one in asked]
                if kind == MULTIFETCH:
                    client.sendall(struct.pack(">IH", 2 + sum(6 + piece.n for piece in pieces), OK))
                for piece in pieces:
                    piece.send(client)
        except (NotAFetch, ConnectionError):
            return


def exactly(client: socket.socket, n: int) -> bytes:
    """Read n bytes, in as many pieces as they come."""
    got = b""
    while len(got) < n:
        part = client.recv(n - len(got))
        if not part:
            raise NotAFetch
        got += part
    return got


def parsed(body: bytes) -> tuple[int, list[tuple[str, int, int, int]]]:
    """The kind of a request, and topic, partition, offset and limit of each fetch in it."""
    (kind,) = struct.unpack_from(">H", body)
    if kind not in (FETCH, MULTIFETCH):
        raise NotAFetch
    at = 2
    count = 1
    if kind == MULTIFETCH:
        (count,) = struct.unpack_from(">H", body, at)
        at += 2
    asked = []
    try:
        for _ in range(count):
            (length,) = struct.unpack_from(">H", body, at)
            name = body[at + 2 : at + 2 + length]
            if not PLAIN_NAME.fullmatch(name):
                raise NotAFetch
            partition, offset, limit = struct.unpack_from(">iqi", body, at + 2 + length)
            asked.append((name.decode(), partition, offset, limit))
            at += 18 + length
    except struct.error:
        raise NotAFetch from None
    return kind, asked


def found(directory: str, topic: str, partition: int, offset: int, limit: int) -> Piece:
    """The piece of a file that a fetch asks for."""
    folder = os.path.join(directory, f"{topic}-{partition}")
    try:
        bases = sorted(int(name.split(".")[0]) for name in os.listdir(folder))
    except FileNotFoundError:
        return Piece(UNKNOWN)
    held = [base for base in bases if base <= offset]
    if not held:
        return Piece(OUT_OF_RANGE)
    file = open(os.path.join(folder, f"{held[-1]:020}.kafka"), "rb")  # noqa: SIM115
    start = offset - held[-1]
    left = os.fstat(file.fileno()).st_size - start
    if left < 0:
        file.close()
        return Piece(OUT_OF_RANGE)
    return Piece(OK, file, start, max(0, min(left, limit)))
