"""What the machine itself can do: loopback, appending to a file, sendfile. Nothing here knows of messages."""

from __future__ import annotations

import os
import socket
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

MB = 1_000_000


def rate(work: Callable[[], int], repeats: int = 3) -> float:
    """Median of MB a second over some runs of ``work``, which returns the bytes it moved."""
    rates = []
    for _ in range(repeats):
        started = time.perf_counter()
        moved = work()
        rates.append(moved / MB / (time.perf_counter() - started))
    return statistics.median(rates)


def _drain(receiver: socket.socket, size: int) -> None:
    buffer = bytearray(1 << 20)
    while size > 0:
        count = receiver.recv_into(buffer)
        if not count:
            return
        size -= count


def _pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = socket.create_connection(listener.getsockname())
        receiver, _ = listener.accept()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sender, receiver


def loopback(total: int, piece: int) -> int:
    """Send ``total`` bytes over loopback TCP, ``piece`` at a time."""
    sender, receiver = _pair()
    with sender, receiver:
        reader = threading.Thread(target=_drain, args=(receiver, total))
        reader.start()
        data = bytes(piece)
        for _ in range(total // piece):
            sender.sendall(data)
        sender.shutdown(socket.SHUT_WR)
        reader.join()
    return total // piece * piece


def append(directory: Path, total: int, piece: int) -> int:
    """Append ``total`` bytes to a file, ``piece`` at a time, and sync it once."""
    path = directory / "append"
    data = bytes(piece)
    with open(path, "wb", buffering=0) as file:
        for _ in range(total // piece):
            file.write(data)
        os.fsync(file.fileno())
    path.unlink()
    return total // piece * piece


def sendfile(directory: Path, total: int, piece: int) -> int:
    """Send a warm file over loopback with sendfile(2), ``piece`` bytes a call."""
    path = directory / "warm"
    if not path.exists():
        path.write_bytes(os.urandom(64 << 20))
    size = path.stat().st_size
    sender, receiver = _pair()
    with sender, receiver, open(path, "rb") as file:
        reader = threading.Thread(target=_drain, args=(receiver, total))
        reader.start()
        sent = 0
        while sent < total:
            position = sent % size
            sent += os.sendfile(sender.fileno(), file.fileno(), position, min(piece, size - position, total - sent))
        sender.shutdown(socket.SHUT_WR)
        reader.join()
    return total


def measure_limits(directory: Path, scale: float) -> dict[str, float]:
    """MB a second of each limit."""
    total = int(400 * MB * scale)
    return {
        "loopback, 1 MB sends": rate(lambda: loopback(total, 1 << 20)),
        "loopback, 10 KB sends": rate(lambda: loopback(total, 10_000)),
        "loopback, 226-byte sends": rate(lambda: loopback(total // 20, 226)),
        "file append, 1 MB writes, one sync": rate(lambda: append(directory, total, 1 << 20)),
        "sendfile, 300 KB": rate(lambda: sendfile(directory, total, 300_000)),
        "sendfile, 1 MB": rate(lambda: sendfile(directory, total, 1 << 20)),
    }
