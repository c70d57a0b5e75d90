"""A ZooKeeper server that does what a test says: its age, and whether it answers as it should."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress

_NO_NODE = -101
_MULTI, _PING, _CLOSE = 14, 11, -11


class ScriptedServer:
    """Answers every request with "no such node". Thread: one for each connection.

    ``is_old``: as ZooKeeper 3.3, no word about read-only, and transactions are dropped. ``garble``: so many answers
    carry a number that nobody waits for.
    """

    def __init__(self, *, is_old: bool = False, garble: int = 0, version: str = "3.3.6") -> None:
        self.is_old, self.garble, self._version = is_old, garble, version
        self._sessions = 0x100
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.connect = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with suppress(OSError), line, line.makefile("rb") as requests:
            head = requests.read(4)
            if head == b"srvr":
                line.sendall(f"Zookeeper version: {self._version}-1, built on some day\nMode: standalone\n".encode())
                return
            if len(head) == 4:
                self._greet(line, requests.read(*struct.unpack(">i", head)))
            while len(head := requests.read(4)) == 4:
                xid, kind = struct.unpack_from(">ii", requests.read(*struct.unpack(">i", head)))
                if kind == _MULTI and self.is_old:
                    continue
                if kind not in (_PING, _CLOSE, _MULTI) and self.garble:
                    self.garble -= 1
                    xid += 1000
                error = 0 if kind in (_PING, _CLOSE, _MULTI) else _NO_NODE
                _send(line, struct.pack(">iqi", xid, 1, error))
                if kind == _CLOSE:
                    return

    def _greet(self, line: socket.socket, request: bytes) -> None:
        _, _, timeout_ms, session = struct.unpack_from(">iqiq", request)
        self._sessions += 1
        granted = (timeout_ms, self._sessions) if session == 0 else (0, 0)
        answer = struct.pack(">iiqi16s", 0, *granted, 16, b"p" * 16)
        _send(line, answer if self.is_old else answer + b"\0")


def _send(line: socket.socket, answer: bytes) -> None:
    line.sendall(struct.pack(">i", len(answer)) + answer)
