"""A broker that does what a script says: it answers each request with what a function returns, or not at all.

A broker that is right cannot be made to refuse, reorder or fall silent at will; where a test is about what a client
does then, this one stands in. It speaks the real wire format.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType

from since2011.wire.codec import ApiKey, Header, Struct, decode_header, decode_request, encode_response

HANG_UP = "hang up"
"""Close the connection instead of answering."""
Script = Callable[[Header, Struct], "Struct | str | None"]
"""An answer; None for silence; HANG_UP."""

_SPOKEN = {ApiKey.API_VERSIONS: 0, ApiKey.METADATA: 12, ApiKey.PRODUCE: 9, ApiKey.INIT_PRODUCER_ID: 4}


class ScriptedBroker:
    """Broker 1, the leader of everything, with topics of ``n_partitions``. A context manager."""

    def __init__(self, script: Script, *, n_partitions: int = 1) -> None:
        self._script, self._n_partitions = script, n_partitions
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.connections = 0

    def __enter__(self) -> ScriptedBroker:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # a close alone leaves it listening while a thread accepts
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while True:
                frame = _take(client, int.from_bytes(_take(client, 4), "big"))
                header = decode_header(frame)
                answer = self._answer(header, decode_request(frame, header))
                if answer == HANG_UP:
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(1 << 16):
                        pass  # closing with something unread would destroy the answers that are on their way
                    return
                if isinstance(answer, Struct):
                    client.sendall(b"".join(encode_response(header.key, header.version, header.correlation, answer)))  # type: ignore[arg-type]

    def _answer(self, header: Header, body: Struct) -> Struct | str | None:
        if header.key == ApiKey.API_VERSIONS:
            return Struct(apis=[Struct(key=int(key), min=0, max=version) for key, version in _SPOKEN.items()])
        if header.key == ApiKey.METADATA:
            return self._metadata(body)
        return self._script(header, body)

    def _metadata(self, body: Struct) -> Struct:
        partitions = [
            Struct(index=index, leader=1, replicas=[1], isr=[1], error=0) for index in range(self._n_partitions)
        ]
        topics = [Struct(error=0, name=topic.name, partitions=partitions) for topic in body.topics]
        return Struct(brokers=[Struct(id=1, host="127.0.0.1", port=self.port)], controller=1, topics=topics)


def _take(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise ConnectionResetError
        data += more
    return data
