"""A blocking connection to the modern port: write a request, read its answer, now or later.

See docs/modern-port.md (answers come in the order of the requests).
"""

from __future__ import annotations

import itertools
import select
import socket
import struct

from kafka2011.client_security import client_security, client_tls
from kafka2011.errors import ConnectionFailed, RequestTimedOut
from since2011.client.login import log_in
from since2011.wire.codec import ApiKey, Struct, decode_response, encode_request

_SIZE = struct.Struct(">i")
_MAX_ANSWER = 64 << 20


class ModernConnection:
    """One socket, one request under way at a time. Thread: one at a time."""

    def __init__(self, host: str, port: int, *, client_id: str, timeout_s: float = 30.0) -> None:
        self.host, self.port = host, port
        self._client_id, self._timeout_s = client_id, timeout_s
        self._numbers = itertools.count(1)
        self._pending: tuple[ApiKey, int, int] | None = None
        self._buffer = bytearray()
        try:
            self._socket = socket.create_connection((host, port), timeout=min(timeout_s, 5.0))
        except OSError as error:
            raise ConnectionFailed(f"cannot reach the modern port at {host}:{port}: {error}; try again") from error
        self._socket.settimeout(timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls, security = client_tls(), client_security()
        if tls is not None:
            try:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
            except OSError as error:
                raise self._broken(error) from error
        if security.user is not None:
            log_in(self.ask, security.user, security.password or "")

    def ask(self, key: ApiKey, version: int, body: Struct) -> Struct:
        """Send a request and wait for its answer."""
        self.send(key, version, body)
        answer = self.receive(self._timeout_s)
        if answer is None:
            self.close()
            raise RequestTimedOut(f"{key.name} at {self.host}:{self.port} was not answered in {self._timeout_s:.0f} s")
        return answer

    def send(self, key: ApiKey, version: int, body: Struct) -> None:
        """Send a request; ``receive`` gets its answer."""
        number = next(self._numbers)
        try:
            self._socket.sendall(b"".join(encode_request(key, version, number, self._client_id, body)))
        except OSError as error:
            raise self._broken(error) from error
        self._pending = (key, version, number)

    def receive(self, wait_s: float) -> Struct | None:
        """The answer to what was sent, or None if it has not come within ``wait_s``."""
        assert self._pending is not None, "nothing was asked"
        key, version, number = self._pending
        while (frame := self._frame()) is None:
            try:
                # What TLS has decrypted already is not seen by select.
                decrypted = getattr(self._socket, "pending", int)()
                if not decrypted and not select.select([self._socket], [], [], max(0.0, wait_s))[0]:
                    return None
                data = self._socket.recv(1 << 16)
            except (OSError, ValueError) as error:
                raise self._broken(error) from error
            if not data:
                raise self._broken(None)
            self._buffer += data
        correlation, answer = decode_response(key, version, frame)
        if correlation != number:
            raise self._broken(None)
        self._pending = None
        return answer

    def close(self) -> None:
        self._socket.close()

    def detach(self) -> socket.socket:
        """The socket, for somebody who keeps several requests under way (``Pipeline``); ask nothing here afterwards."""
        assert self._pending is None and not self._buffer, "an answer is still to come"
        return self._socket

    def _frame(self) -> bytes | None:
        if len(self._buffer) < 4:
            return None
        (size,) = _SIZE.unpack_from(self._buffer)
        if not 4 <= size <= _MAX_ANSWER:
            raise self._broken(None)
        if len(self._buffer) < 4 + size:
            return None
        frame = bytes(self._buffer[4 : 4 + size])
        del self._buffer[: 4 + size]
        return frame

    def _broken(self, error: Exception | None) -> ConnectionFailed:
        self.close()
        why = f": {error}" if error else ""
        return ConnectionFailed(f"the connection to {self.host}:{self.port} broke{why}; try again")
