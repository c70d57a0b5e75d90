"""A client that sends exactly the bytes a test gives it."""

from __future__ import annotations

import socket
import struct
from types import TracebackType

from kafka2011.testing import BrokerProcess
from kafka2011.wire import FetchRequest, OffsetsRequest, ProduceRequest, encode_set
from tests.waiting import PATIENCE_S, until


class RawClient:
    """One connection to a broker."""

    def __init__(self, broker: BrokerProcess, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect((broker.host, broker.port))

    def send(self, *frames: bytes) -> None:
        """Send whole frames, or anything else, at once."""
        self.socket.sendall(b"".join(frames))

    def receive(self, size: int) -> bytes:
        """Exactly ``size`` bytes."""
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError(f"closed after {len(data)} of {size} bytes")
            data += piece
        return bytes(data)

    def reply(self) -> bytes:
        """The next reply without its size."""
        (size,) = struct.unpack(">i", self.receive(4))
        return self.receive(size)

    def ask(self, frame: bytes) -> bytes:
        """Send one request, return its reply without the size."""
        self.send(frame)
        return self.reply()

    def fetch(self, topic: str, offset: int = 0, max_size: int = 1 << 20, partition: int = 0) -> tuple[int, bytes]:
        """Error code and message-set bytes."""
        reply = self.ask(FetchRequest(topic, partition, offset, max_size).encode())
        return struct.unpack_from(">h", reply)[0], reply[2:]

    def offsets(self, topic: str, time_ms: int = -1, max_offsets: int = 1, partition: int = 0) -> list[int]:
        """What an OFFSETS request answers."""
        reply = self.ask(OffsetsRequest(topic, partition, time_ms, max_offsets).encode())
        code, count = struct.unpack_from(">hi", reply)
        assert code == 0
        return list(struct.unpack_from(f">{count}q", reply, 6))

    def produce(self, topic: str, *payloads: bytes, partition: int = 0) -> None:
        """Send one PRODUCE."""
        self.send(ProduceRequest(topic, partition, encode_set(payloads)).encode())

    def wait_for(self, topic: str, end: int, partition: int = 0) -> None:
        """Wait until consumers can read everything before ``end``."""
        until(lambda: self.offsets(topic, partition=partition)[0] >= end, f"{topic} is flushed up to {end}")

    def is_closed(self) -> bool:
        """Wait for the broker to close; False if it says something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def is_served(self) -> bool:
        """Whether this very connection still gets answers."""
        return self.offsets("a-topic-nobody-knows", -2) == [0]

    def close(self) -> None:
        """Close."""
        self.socket.close()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
