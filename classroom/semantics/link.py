"""The way between a producer and its broker, with faults at chosen requests: the same ones for every producer.

A fault is chosen by the number of the Produce request that arrives, so nothing depends on time:

    LOST_REQUEST  the connection breaks before the request is passed on: the broker never saw it
    LOST_ANSWER   the connection breaks after the broker has taken the request: its answer is lost
    CRASH         the same, and the broker is killed (SIGKILL) and started again
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from enum import Enum

_PRODUCE = 0


class Fault(Enum):
    """What happens to a request."""

    LOST_REQUEST = "lost request"
    LOST_ANSWER = "lost answer"
    CRASH = "crash"


class Link:
    """Forwards connections to ``target``; ``crash`` kills and restarts the broker. Threads of its own."""

    def __init__(self, crash: Callable[[], None]) -> None:
        self.target = 0
        self.struck = 0
        """How many faults have happened."""
        self._crash = crash
        self._faults: Mapping[int, Fault] = {}
        self._seen = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def plan(self, faults: Mapping[int, Fault]) -> None:
        """From now on, count requests from 1 and strike at these."""
        with self._lock:
            self._faults, self._seen, self.struck = dict(faults), 0, 0

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    client.close()
                    continue
                wire = _Wire(client, broker)
                for work in (self._requests, self._answers):
                    threading.Thread(target=self._pump, args=(work, wire), daemon=True).start()

    def _pump(self, work: Callable[[_Wire], None], wire: _Wire) -> None:
        with contextlib.suppress(OSError):
            work(wire)
        wire.cut()

    def _requests(self, wire: _Wire) -> None:
        while True:
            frame = _frame(wire.client)
            fault = self._fault() if int.from_bytes(frame[4:6], "big") == _PRODUCE else None
            if fault is Fault.LOST_REQUEST:
                return
            if fault is not None:
                wire.fatal[frame[8:12]] = fault
            wire.broker.sendall(frame)
            if fault is not None and _is_unanswered(frame):
                self._strike(wire, fault)
                return

    def _answers(self, wire: _Wire) -> None:
        while True:
            frame = _frame(wire.broker)
            fault = wire.fatal.get(frame[4:8])
            if fault is not None:
                self._strike(wire, fault)
                return
            wire.client.sendall(frame)

    def _fault(self) -> Fault | None:
        with self._lock:
            self._seen += 1
            fault = self._faults.get(self._seen)
            self.struck += fault is not None
            return fault

    def _strike(self, wire: _Wire, fault: Fault) -> None:
        if fault is Fault.CRASH:
            self._crash()
        wire.cut()


class _Wire:
    """Both ends of a connection, and the requests whose answers must not arrive."""

    def __init__(self, client: socket.socket, broker: socket.socket) -> None:
        self.client, self.broker = client, broker
        self.fatal: dict[bytes, Fault] = {}

    def cut(self) -> None:
        for end in (self.client, self.broker):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def _is_unanswered(frame: bytes) -> bool:
    """Whether a Produce of version 9 or later asks for no answer (acks=0)."""
    at = 14 + max(0, int.from_bytes(frame[12:14], "big", signed=True)) + 1  # header, client id, no tagged fields
    at += max(1, frame[at])  # transactional id: a compact text that is short here
    return frame[at : at + 2] == b"\0\0"


def _frame(source: socket.socket) -> bytes:
    size = _take(source, 4)
    return size + _take(source, int.from_bytes(size, "big"))


def _take(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise ConnectionResetError
        data += more
    return data
