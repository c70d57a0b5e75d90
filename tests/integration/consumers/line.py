"""A line between clients and one ZooKeeper that can fall silent, or give wrong answers."""

from __future__ import annotations

import socket
import threading
from types import TracebackType


class Line:
    """Forward bytes to ``port`` until ``cut``; from then on connections stay open and mute. Thread: its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self._cut = False
        self._garbled: set[socket.socket] = set()
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """From now on nobody hears anything."""
        self._cut = True

    def garble(self) -> None:
        """On every connection that is open now, the next answer carries a number that nobody waits for."""
        self._garbled |= set(self._ends)

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in [self._listening, *self._ends]:
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                return
            self._ends += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                if not self._cut:
                    other.sendall(self._answer(one, other, data))
            if not self._cut:
                other.close()
        except OSError:
            pass  # closed at the end of the test

    def _answer(self, one: socket.socket, other: socket.socket, data: bytes) -> bytes:
        """What goes on: an answer of the server (its number is positive) may be garbled, once."""
        is_answer = one.getpeername()[1] == self._port and int.from_bytes(data[4:8], signed=True) > 0
        if not is_answer or one not in self._garbled:
            return data
        self._garbled -= {one, other}
        return data[:4] + (int.from_bytes(data[4:8]) + 1000).to_bytes(4) + data[8:]
