"""A broker that does what the test says: it records requests and answers with given bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from kafka2011.errors import InvalidRequest
from kafka2011.wire import FrameSplitter, ProduceRequest, Request, decode_set, parse_request
from tests.waiting import until

Answer = Callable[[Request, socket.socket], None]


class PuppetBroker:
    """Listen on loopback, keep every request, let ``answer`` reply. One thread per connection."""

    def __init__(self, answer: Answer | None = None) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[Request] = []
        self.n_connections = 0
        self._n_ended = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def produced(self) -> list[ProduceRequest]:
        """The produce requests so far, in order of arrival."""
        return [request for request in list(self.requests) if isinstance(request, ProduceRequest)]

    def received(self, n_messages: int) -> list[bytes]:
        """All payloads, once ``n_messages`` are there and every connection was read to its end."""
        until(lambda: len(self.payloads) >= n_messages, f"{n_messages} messages arrived")
        until(lambda: self._n_ended == self.n_connections, "the connections ended")
        return self.payloads

    @property
    def payloads(self) -> list[bytes]:
        """The payloads of all produce requests so far."""
        return [message.payload for request in self.produced for message in decode_set(request.data)]

    def hang_up(self) -> None:
        """Close every connection; new ones are taken."""
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop listening and hang up."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.n_connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        splitter = FrameSplitter(100 << 20)
        with connection, contextlib.suppress(OSError, InvalidRequest):  # a broker hangs up on those
            while data := connection.recv(1 << 20):
                for frame in splitter.feed(data):
                    request = parse_request(frame)
                    self.requests.append(request)
                    if self._answer is not None:
                        self._answer(request, connection)
        self._n_ended += 1
