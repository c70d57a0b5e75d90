"""A blocking connection to one broker: write a request, read its reply.

Everything above (producer, consumers, the Spark load, the commands) talks to brokers through this class. A
connection is opened when first needed. Whatever goes wrong on it, it is closed: a stream that lost its place is
never used again, and the next call opens a new one.

Paper: §3.1 (a pull request names an offset and a number of bytes; the broker keeps nothing about the reader).
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import struct
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import ParamSpec, TypeVar

from kafka2011.client_security import client_tls, speaks_tls
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import (
    AnswerLost,
    CannotConnect,
    ConnectionFailed,
    InvalidMessageSize,
    Kafka2011Error,
    OffsetOutOfRange,
    PortSpeaksTls,
    RequestTimedOut,
    SendBroken,
    WireError,
)
from kafka2011.wire import (
    EARLIEST,
    LATEST,
    AckedProduceRequest,
    AckLevel,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
)
from kafka2011.wire.acked_produce import decode_acked_response
from kafka2011.wire.fetch import decode_fetch_response
from kafka2011.wire.multifetch import decode_multifetch_response
from kafka2011.wire.offsets import decode_offsets_response

P = ParamSpec("P")
T = TypeVar("T")

_HEAD = struct.Struct(">ih")
_FIRST_BACKOFF_S = 0.02
_LONGEST_BACKOFF_S = 1.0
_SMALLEST_BUFFER = 64 << 10
_LARGEST_GUESS = 4 << 20


def _multifetch(fetches: Sequence[FetchRequest]) -> tuple[bytes, int]:
    """The request, and the most its answer may have."""
    return MultiFetchRequest(tuple(fetches)).encode(), 2 + sum(6 + fetch.max_size for fetch in fetches)


class BrokerConnection:
    """One connection to one broker, opened lazily. Thread: one at a time.

    ``timeout_s`` bounds every request, ``connect_timeout_s`` the attempts to connect (with capped back-off).
    ``tls`` is an ``ssl.SSLContext`` when the broker's port speaks TLS; unset: what ``client_security`` declares.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_s: float = 30.0,
        connect_timeout_s: float = 5.0,
        tls: ssl.SSLContext | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.host, self.port = host, port
        self._timeout_s, self._connect_timeout_s = timeout_s, connect_timeout_s
        self._tls = client_tls() if tls is None else tls
        self._clock = clock
        self._socket: socket.socket | None = None
        self._poll = select.poll()
        self._owner_pid = 0
        self._heard = False  # an answer, ever
        self._last_size = 0
        """Bytes of the last answer: the next one is expected to have as many."""
        self._ahead: tuple[bytes, int] | None = None
        """A request sent ahead, and the most its answer may have; nobody has asked for that answer yet."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def __enter__(self) -> BrokerConnection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def connected(self) -> bool:
        """Whether a socket is open; the broker may be gone nevertheless."""
        return self._socket is not None

    def close(self) -> None:
        """Close the socket, if any; the next request opens a new one."""
        self._ahead = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # -- the five requests of 0.7, and the acknowledged produce -------------------------------------------------

    def fetch(self, topic: str, partition: int, offset: int, max_size: int = 1 << 20) -> bytes:
        """Return the message-set bytes at ``offset``, at most ``max_size``; empty at the end of the log."""
        return bytes(self.fetch_view(FetchRequest(topic, partition, offset, max_size)))

    def fetch_view(self, request: FetchRequest) -> memoryview:
        """As ``fetch``, without a copy: the view is of a buffer that nobody else uses."""
        reply = self._ask(request.encode(), 2 + request.max_size)
        try:
            return decode_fetch_response(reply, request)
        except OffsetOutOfRange:
            raise self._out_of_range(request) from None

    def multifetch(self, fetches: Sequence[FetchRequest]) -> list[memoryview | Kafka2011Error]:
        """Fetch from several partitions in one request; each answer is a view of its bytes, or that one's error."""
        reply = self._ask(*_multifetch(fetches))
        answers = self._decoded(decode_multifetch_response, reply, fetches)
        for i, answer in enumerate(answers):
            if isinstance(answer, OffsetOutOfRange):
                answers[i] = self._out_of_range(fetches[i])
        return answers

    def fetch_ahead(self, request: FetchRequest) -> None:
        """Send a fetch whose answer is asked for later, by the same fetch. Any other request drops that answer.

        Never fails: whatever is wrong is told to whoever asks for the answer.
        """
        self._send_ahead(request.encode(), 2 + request.max_size)

    def multifetch_ahead(self, fetches: Sequence[FetchRequest]) -> None:
        """As ``fetch_ahead``, for several partitions."""
        self._send_ahead(*_multifetch(fetches))

    def offsets(self, topic: str, partition: int, time_ms: int = LATEST, max_offsets: int = 1) -> list[int]:
        """Return offsets before a time, newest first; LATEST gives the flushed end, EARLIEST the first offset."""
        request = OffsetsRequest(topic, partition, time_ms, max_offsets)
        reply = bytes(self._ask(request.encode(), 6 + 8 * max_offsets))
        return self._decoded(decode_offsets_response, reply, f"{topic}-{partition} on {self}")

    def produce(self, topic: str, partition: int, data: bytes) -> None:
        """Publish an encoded message set. There is no answer: returning means the kernel has it."""
        self.write(ProduceRequest(topic, partition, data).encode())

    def multiproduce(self, produces: Sequence[ProduceRequest]) -> None:
        """Publish several encoded sets in one request, without an answer."""
        self.write(MultiProduceRequest(tuple(produces)).encode())

    def produce_acked(self, topic: str, partition: int, data: bytes, level: AckLevel) -> tuple[int, int]:
        """Publish and wait until the set is appended or flushed; return its first and next offset. Not in 2011."""
        request = AckedProduceRequest(level, ProduceRequest(topic, partition, data))
        try:
            reply = self._ask(request.encode(), 18, again=False)
        except AnswerLost as error:
            hint = "a broker that has not set produce.acks.enable=true closes the connection"
            raise AnswerLost(f"{error}; {hint}") from error
        return self._decoded(decode_acked_response, bytes(reply), f"{topic}-{partition} on {self}")

    def ask(self, request: bytes, max_size: int) -> memoryview:
        """Send one of a plug-in's requests, once; its answer from the error code on."""
        return self._ask(request, max_size, again=False)

    def write(self, *requests: bytes) -> None:
        """Send requests that have no answer; any number of whole frames in one go, without copying them together."""
        connection = self._open()
        accepted = 0
        left = [memoryview(part) for part in (requests if self._tls is None else [b"".join(requests)]) if part]
        try:
            while left:
                count = connection.sendmsg(left) if self._tls is None else connection.send(left[0])
                accepted += count
                while left and count >= len(left[0]):
                    count -= len(left.pop(0))
                if count:
                    left[0] = left[0][count:]
        except TimeoutError as error:
            self.close()
            if not accepted:
                raise SendBroken(f"{self} took no data for {self._timeout_s:g} s; connection closed", 0) from error
            raise SendBroken(f"{self} stopped taking data for {self._timeout_s:g} s", accepted) from error
        except OSError as error:
            self.close()
            raise SendBroken(f"lost the connection to {self} while sending: {error}", accepted) from error

    # -- the stream ---------------------------------------------------------------------------------------------

    def _ask(self, request: bytes, max_size: int, again: bool = True) -> memoryview:
        """Send a request, unless it was sent ahead, and return its reply from the error code on.

        A request that only reads is sent ``again`` if the connection turns out to be stale.
        """
        ahead, self._ahead = self._ahead, None
        reused = self._socket is not None
        try:
            if ahead is not None and ahead[0] != request:
                self._read_reply(ahead[1])
            if ahead is None or ahead[0] != request:
                self.write(request)
            return self._read_reply(max_size)
        except ConnectionFailed:
            if not (again and reused):
                raise
        self.write(request)
        return self._read_reply(max_size)

    def _send_ahead(self, request: bytes, max_size: int) -> None:
        """Send on a connection that is open and at rest; otherwise leave it to the request that asks for the answer."""
        if self._socket is None or self._ahead is not None or self._poll.poll(0):
            return
        try:
            self.write(request)
        except ConnectionFailed:
            return
        self._ahead = request, max_size

    def _read_reply(self, max_size: int) -> memoryview:
        connection = self._socket
        assert connection is not None
        deadline = self._clock.monotonic() + self._timeout_s
        buffer = bytearray(min(4 + max_size, max(self._last_size, _SMALLEST_BUFFER)))
        got, wanted = 0, _HEAD.size
        try:
            while got < wanted:
                if got:
                    connection.settimeout(max(deadline - self._clock.monotonic(), 0.001))
                count = connection.recv_into(memoryview(buffer)[got:])
                if not count:
                    raise ConnectionResetError("the broker closed it")
                if got < _HEAD.size <= got + count:
                    wanted = 4 + int.from_bytes(buffer[:4], "big", signed=True)
                    if not _HEAD.size <= wanted <= 4 + max_size:
                        self.close()
                        raise InvalidMessageSize(
                            f"{self} announced a reply of {wanted - 4} bytes where at most {max_size} were "
                            "asked for; connection closed. Is this a Kafka 0.7 port?"
                        )
                    if wanted > len(buffer):
                        buffer = buffer + bytes(wanted - len(buffer))
                got += count
        except TimeoutError as error:
            self.close()
            raise RequestTimedOut(
                f"{self} did not answer within {self._timeout_s:g} s; connection closed, a new attempt may succeed"
            ) from error
        except OSError as error:
            self.close()
            if not (got or self._heard) and self._tls is None and speaks_tls(self.host, self.port):
                raise PortSpeaksTls(
                    f"{self} speaks TLS and was spoken to in the clear, so it understood nothing; declare whom to "
                    "trust: kafka2011 --client client.tls.ca=FILE …, or KAFKA2011_CLIENT_TLS_CA=FILE"
                ) from error
            raise AnswerLost(f"lost the connection to {self} while waiting for an answer: {error}") from error
        if got > wanted:
            self.close()
            raise InvalidMessageSize(f"{self} sent {got - wanted} bytes nobody asked for; connection closed")
        connection.settimeout(self._timeout_s)
        self._heard = True
        self._last_size = min(wanted, _LARGEST_GUESS)
        return memoryview(buffer)[4:wanted]

    def _open(self) -> socket.socket:
        """Return a socket the broker has not hung up on, connecting if need be."""
        if self._socket is not None:
            if self._owner_pid == os.getpid() and not self._poll.poll(0):
                return self._socket
            # The broker hung up, or sent what nobody asked for: this stream is over. Or it came through fork(), and
            # closing our copy leaves the parent's connection alone.
            self.close()
        self._socket = self._connect()
        self._owner_pid = os.getpid()
        self._poll = select.poll()
        # With TLS, unasked bytes are normal (session tickets); only a hang-up counts.
        self._poll.register(self._socket, select.POLLRDHUP | (0 if self._tls else select.POLLIN))
        return self._socket

    def _connect(self) -> socket.socket:
        if self.port == 0:
            raise CannotConnect(f"the broker at {self.host} does not offer the 2011 protocol (port.access=off)")
        deadline = self._clock.monotonic() + self._connect_timeout_s
        backoff = _FIRST_BACKOFF_S
        while True:
            left = deadline - self._clock.monotonic()
            try:
                return self._connect_once(max(left, 0.001))
            except (OSError, ssl.SSLError) as error:
                if isinstance(error, ssl.SSLError) or left <= backoff:
                    raise CannotConnect(
                        f"cannot connect to a broker at {self}: {error}; nothing was sent. Is it running?"
                    ) from error
            self._clock.sleep(backoff)
            backoff = min(backoff * 2, _LONGEST_BACKOFF_S)

    def _connect_once(self, timeout_s: float) -> socket.socket:
        connection = socket.create_connection((self.host, self.port), timeout=timeout_s)
        try:
            if connection.getsockname() == connection.getpeername():
                # Nobody listens, and the kernel picked that very port as our own: we would talk to ourselves.
                raise ConnectionRefusedError("nobody listens there")
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_hostname=self.host)
            connection.settimeout(self._timeout_s)
        except BaseException:
            connection.close()
            raise
        return connection

    # -- replies that are not what was asked for ----------------------------------------------------------------

    def _out_of_range(self, request: FetchRequest) -> OffsetOutOfRange:
        """The error with the range that would have been right."""
        first = self.offsets(request.topic, request.partition, EARLIEST)
        end = self.offsets(request.topic, request.partition, LATEST)
        where = f"{request.topic}-{request.partition} on {self}"
        return OffsetOutOfRange(request.offset, first[0] if first else 0, end[0] if end else 0, where)

    def _decoded(self, decode: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Decode a reply; after bytes that make no sense the stream is not used again."""
        try:
            return decode(*args, **kwargs)
        except WireError:
            self.close()
            raise
