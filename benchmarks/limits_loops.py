"""limits.c in Python, word for word, for machines without a C compiler: see there for the command line.

python limits_loops.py sendfile FILE BYTES PIECE
"""

from __future__ import annotations

import os
import resource
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable

_buffer = bytearray(1 << 20)


def _report(moved: int, seconds: float) -> None:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(moved, f"{seconds:.6f}", f"{sum(one.ru_utime + one.ru_stime for one in used):.6f}")


def _transfer(work: Callable[[socket.socket], None]) -> None:
    """Run ``work`` in a child on one end of a connection and time how long the other end receives."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with socket.create_connection(listener.getsockname()) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    connection.recv(1)
                    work(connection)
                code = 0
            finally:
                os._exit(code)
        receiver, _ = listener.accept()
    with receiver:
        started = time.perf_counter()
        receiver.sendall(b"!")
        moved = 0
        while n := receiver.recv_into(_buffer):
            moved += n
        seconds = time.perf_counter() - started
    if os.waitpid(child, 0)[1]:
        sys.exit("limits: the sender failed")
    _report(moved, seconds)


def loopback(total: int, piece: int) -> None:
    """Send ``total`` bytes over loopback TCP, ``piece`` a call."""
    data = bytes(piece)

    def work(connection: socket.socket) -> None:
        for _ in range(total // piece):
            connection.sendall(data)

    _transfer(work)


def sendfile(path: str, total: int, piece: int) -> None:
    """Send a file again and again over loopback with sendfile(2)."""
    size = os.stat(path).st_size
    if size < piece:
        sys.exit("limits: the file is smaller than a piece")

    def work(connection: socket.socket) -> None:
        with open(path, "rb") as file:
            at = 0
            for _ in range(total // piece):
                at = 0 if at + piece > size else at
                end = at + piece
                while at < end:
                    at += os.sendfile(connection.fileno(), file.fileno(), at, end - at)

    _transfer(work)


def append(path: str, total: int, piece: int, every: int) -> None:
    """Append; sync in a thread after every ``every`` bytes (0: once at the end), one sync at a time."""
    data = b"x" * piece
    more = threading.Condition()
    written = synced = 0
    ended = False

    def due() -> bool:
        return ended or 0 < every <= written - synced

    def sync() -> None:
        nonlocal synced
        last = False
        while not last:
            with more:
                more.wait_for(due)
                last, target = ended, written
            os.fsync(file.fileno())
            synced = target

    with open(path, "ab", buffering=0) as file:
        started = time.perf_counter()
        syncer = threading.Thread(target=sync)
        syncer.start()
        for _ in range(total // piece):
            file.write(data)
            with more:
                written += piece
                more.notify()
        with more:
            ended = True
            more.notify()
        syncer.join()
        _report(written, time.perf_counter() - started)


def fetch(port: int, topic: str, start: int, span: int, piece: int, total: int, ahead: int) -> None:
    """Fetch ``piece`` bytes at a time from a broker and only look at the head of each answer."""
    count, fits = total // piece, span // piece
    name = topic.encode()
    expected = struct.pack(">ih", piece + 2, 0)
    asked = received = 0
    head = b""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        started = time.perf_counter()
        while received < count * (6 + piece):
            while asked < count and asked - received // (6 + piece) < ahead:
                fields = struct.pack(">iqi", 0, start + asked % fits * piece, piece)
                connection.sendall(struct.pack(">ihh", 20 + len(name), 1, len(name)) + name + fields)
                asked += 1
            # Up to the end of this answer at most, so that the next head stands at the front of the buffer.
            within = received % (6 + piece)
            n = connection.recv_into(_buffer, min(len(_buffer), (6 if within < 6 else 6 + piece) - within))
            if not n:
                sys.exit("limits: the broker closed the connection")
            if within < 6:
                head = (head if within else b"") + _buffer[:n]
                if not expected.startswith(head):
                    sys.exit(f"limits: an answer that is not {piece} bytes without an error")
            received += n
        _report(count * piece, time.perf_counter() - started)


_COMMANDS: dict[str, Callable[..., None]] = {f.__name__: f for f in (loopback, append, sendfile, fetch)}

if __name__ == "__main__":
    _COMMANDS[sys.argv[1]](*(int(word) if word.isdigit() else word for word in sys.argv[2:]))
