"""What is measured: a messaging system that is started, filled by one producer and read by one consumer.

A System object lives twice: in the benchmark, which starts the server, and in a worker process of its own, which is the
producer or the consumer and knows the server only by its port.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import psutil

from kafka2011.child import die_with_parent

MESSAGE_SIZE = 200
MARKER = b"<kafka2011>"
"""How every payload begins: a driver that only counts messages counts these."""
PATIENCE_S = 120.0


class Stopwatch:
    """Seconds from here to there."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    def seconds(self) -> float:
        return time.perf_counter() - self._started


@dataclass(frozen=True, slots=True)
class Cell:
    """One number to measure."""

    role: str
    """``produce``, ``consume`` or ``group``."""
    batch: int
    messages: int

    @property
    def label(self) -> str:
        return {"consume": "consume", "group": "consume in a group"}.get(self.role, f"produce, batch {self.batch}")


class System(ABC):
    """Base of all systems."""

    name: ClassVar[str]
    note: ClassVar[str]
    """How it was configured and driven, in half a sentence."""

    def __init__(self, port: int = 0, hint: str = "") -> None:
        self.port = port
        self.hint = hint
        """What a worker must know besides the port."""
        self.processes: list[subprocess.Popen[bytes]] = []

    def missing(self) -> str | None:
        """Why it cannot be measured here; None if it can."""
        return None

    @abstractmethod
    def cells(self, scale: float) -> list[Cell]:
        """What is measured of it, with how many messages."""

    def start(self, directory: Path) -> None:  # noqa: B027 - one without a server of its own has nothing to start
        """Start the server with its data in ``directory``."""

    def stop(self) -> None:
        """End what ``start`` started."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def cpu_seconds(self) -> float:
        """CPU time the server used so far."""
        total = 0.0
        for process in self.processes:
            try:
                family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            except psutil.NoSuchProcess:
                continue
            total += sum(sum(member.cpu_times()[:2]) for member in family if member.is_running())
        return total

    @abstractmethod
    def produce(self, topic: str, payloads: Sequence[bytes], batch: int) -> float:
        """Publish everything; return the seconds until the server has it."""

    def consume(self, topic: str, messages: int) -> float:
        """Read everything; return the seconds."""
        raise TypeError(f"{self.name} is only published to: its cells must not ask for reading")

    def spawn(self, command: Sequence[str], directory: Path, environ: dict[str, str] | None = None) -> None:
        """Start a server process that ends with us; its output goes to ``directory``."""
        with open(directory / "output.txt", "ab") as output:
            process = subprocess.Popen(
                command,
                cwd=directory,
                env=os.environ | (environ or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=die_with_parent,
            )
        self.processes.append(process)

    def wait_for_port(self, directory: Path) -> None:
        """Wait until the server listens."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                ended = self.processes[-1].poll()
                if ended is not None or time.monotonic() > deadline:
                    output = (directory / "output.txt").read_text(errors="replace")[-800:]
                    raise RuntimeError(f"{self.name} did not start (exit code {ended}): {output}") from None
                time.sleep(0.1)

    def connect(self) -> socket.socket:
        """A connection for a driver."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def chunks(parts: Sequence[bytes], count: int = 500) -> Iterator[bytes]:
    """Pre-encoded messages in pieces of ``count``: for drivers that only send."""
    for start in range(0, len(parts), count):
        yield b"".join(parts[start : start + count])


def count_markers(receive: Callable[[], bytes], messages: int) -> None:
    """Receive until ``messages`` payloads came by, recognised by how they begin."""
    seen, tail = 0, b""
    while seen < messages:
        data = receive()
        if not data:
            raise RuntimeError(f"the connection ended after {seen} of {messages} messages")
        window = tail + data
        seen += window.count(MARKER)
        tail = window[-(len(MARKER) - 1) :]


def make_payloads(count: int) -> list[bytes]:
    """Messages of 200 bytes, no two alike."""
    filler = os.urandom(MESSAGE_SIZE)
    head = len(MARKER) + 12
    return [MARKER + b"%012d" % i + filler[: MESSAGE_SIZE - head] for i in range(count)]
