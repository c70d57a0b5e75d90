"""A proxy in front of the modern port that can lose answers: the request arrives, the client never hears of it."""

from __future__ import annotations

import contextlib
import socket
import threading

PRODUCE = 0


class Proxy:
    """Forward connections to ``target``; cut one instead of passing on the answer to a Produce, ``cuts`` times."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target = 0
        self.cuts = 0
        self.n_cut = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
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
                produces: set[bytes] = set()
                for work, source, sink in ((self._requests, client, broker), (self._answers, broker, client)):
                    threading.Thread(target=self._pump, args=(work, source, sink, produces), daemon=True).start()

    def _pump(self, work: object, source: socket.socket, sink: socket.socket, produces: set[bytes]) -> None:
        with contextlib.suppress(OSError):
            work(source, sink, produces)  # type: ignore[operator]  # one of the two methods below
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _requests(self, source: socket.socket, sink: socket.socket, produces: set[bytes]) -> None:
        while frame := _frame(source):
            if int.from_bytes(frame[:2], "big") == PRODUCE:
                produces.add(frame[4:8])
            sink.sendall(len(frame).to_bytes(4, "big") + frame)

    def _answers(self, source: socket.socket, sink: socket.socket, produces: set[bytes]) -> None:
        while frame := _frame(source):
            if frame[:4] in produces and self._wants_cut():
                return
            sink.sendall(len(frame).to_bytes(4, "big") + frame)

    def _wants_cut(self) -> bool:
        with self._lock:
            if self.n_cut >= self.cuts:
                return False
            self.n_cut += 1
            return True


def _frame(source: socket.socket) -> bytes:
    size = int.from_bytes(_take(source, 4), "big")
    return _take(source, size)


def _take(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise ConnectionResetError
        data += more
    return data
