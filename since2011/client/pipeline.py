"""A connection with several requests under way, which never makes its caller wait.

``ModernConnection`` opens it (TLS, login) and asks which versions the broker speaks; from then on the socket does not
block: what cannot be written yet stays in the outbox, and ``read`` returns the answers that are whole.
"""

from __future__ import annotations

import ssl
from collections import deque
from dataclasses import dataclass

from kafka2011.errors import ConnectionFailed, InvalidRequest
from since2011.client.connection import ModernConnection
from since2011.wire.codec import APIS, ApiKey, Struct, decode_response, encode_request

_READ = 1 << 18
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class TooOld(ConnectionFailed):
    """A broker that does not speak what we need."""

    retriable = False


@dataclass(slots=True)
class Asked:
    """A request under way, with what its sender wants to know it by."""

    key: ApiKey
    version: int
    number: int
    since: float
    tag: object


class Pipeline:
    """One socket with requests in flight, answered in order. Thread: one at a time."""

    def __init__(self, connection: ModernConnection, client_id: str) -> None:
        self._connection, self._client_id = connection, client_id
        self._versions: dict[int, tuple[int, int]] = {one.key: (one.min, one.max) for one in _offered(connection)}
        self.in_flight: deque[Asked] = deque()
        self._outbox: deque[bytes] = deque()
        self._unsent = 0
        """How much of the outbox's first part is written."""
        self._number = 0
        self._buffer = bytearray()
        self._socket = connection.detach()
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """What to wait on."""
        return self._socket.fileno()

    @property
    def wants_to_write(self) -> bool:
        return bool(self._outbox)

    def version_of(self, key: ApiKey, newest: int) -> int:
        """The newest version both sides speak, at most ``newest``; raises TooOld where there is none."""
        first, last = self._versions.get(key, (0, -1))
        chosen = min(last, newest, APIS[key].last)
        if chosen < max(first, APIS[key].first):
            where = f"{self._connection.host}:{self._connection.port}"
            raise TooOld(f"the broker at {where} does not offer a version of {key.name} that we speak; use another")
        return chosen

    def send(self, key: ApiKey, newest: int, body: Struct, tag: object, now: float, *, answered: bool = True) -> None:
        """Write a request, or as much of it as goes; ``answered``: whether an answer will come (acks=0 has none)."""
        version = self.version_of(key, newest)
        self._number += 1
        self._outbox.extend(encode_request(key, version, self._number, self._client_id, body))
        if answered:
            self.in_flight.append(Asked(key, version, self._number, now, tag))
        self.write()

    def write(self) -> None:
        """Write what the kernel takes; raises ConnectionFailed."""
        outbox = self._outbox
        try:
            while outbox:
                part = outbox[0]
                sent = self._socket.send(memoryview(part)[self._unsent :] if self._unsent else part)
                self._unsent += sent
                if self._unsent < len(part):
                    continue
                outbox.popleft()
                self._unsent = 0
        except _WOULD_BLOCK:
            return
        except OSError as error:
            raise self._broken(error) from error

    def read(self) -> list[tuple[Asked, Struct]]:
        """The answers that have come; raises ConnectionFailed when the broker hung up."""
        closed: Exception | None = None
        try:
            while True:
                data = self._socket.recv(_READ)
                if not data:
                    closed = ConnectionResetError("the broker closed it")
                    break
                self._buffer += data
                if len(data) < _READ and not getattr(self._socket, "pending", int)():
                    break
        except _WOULD_BLOCK:
            pass
        except OSError as error:
            closed = error
        answers = self._answers()
        if closed is not None and not answers:
            raise self._broken(closed)
        return answers  # a connection that ended after them is found out next time

    def _answers(self) -> list[tuple[Asked, Struct]]:
        found: list[tuple[Asked, Struct]] = []
        at, data = 0, self._buffer
        while len(data) - at >= 4:
            size = int.from_bytes(data[at : at + 4], "big", signed=True)
            if size < 4:
                raise self._broken(ValueError(f"an answer of {size} bytes"))
            if len(data) - at - 4 < size:
                break
            if not self.in_flight:
                raise self._broken(ValueError("an answer nobody asked for"))
            asked = self.in_flight.popleft()
            try:
                with memoryview(data) as view:  # sliced without a copy: an answer may be megabytes
                    frame = bytes(view[at + 4 : at + 4 + size])
                number, body = decode_response(asked.key, asked.version, frame)
            except InvalidRequest as error:
                raise self._broken(error) from error
            if number != asked.number:
                raise self._broken(ValueError(f"answer {number} to request {asked.number}"))
            found.append((asked, body))
            at += 4 + size
        del data[:at]
        return found

    def close(self) -> None:
        """Hang up; what is in flight stays there for its sender to look at."""
        self._socket.close()

    def _broken(self, error: Exception) -> ConnectionFailed:
        self.close()
        where = f"{self._connection.host}:{self._connection.port}"
        return ConnectionFailed(f"the connection to {where} broke: {error}; what was in flight is tried again")


def _offered(connection: ModernConnection) -> list[Struct]:
    answer = connection.ask(ApiKey.API_VERSIONS, 0, Struct())
    offered: list[Struct] = answer.apis
    return offered
