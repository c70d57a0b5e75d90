"""What the connections of both ports share: frames in, answers out, limits, pausing.

A connection cuts the byte stream into requests, hands them to its port in order (``_run``), and sends answers through
an outbox of its own: bytes and file ranges, in order. What is read, and when the next request is looked at, each port
decides (``_must_pause``). Paper: §3.1.
"""

from __future__ import annotations

import socket
import traceback
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from kafka2011.broker.events import ConnectionClosed, HandlerFailed
from kafka2011.broker.principal import ANONYMOUS, of_transport
from kafka2011.broker.sendfile import CopyingOutbox, Outbox, Transport
from kafka2011.errors import Kafka2011Error
from kafka2011.wire.frame import FrameSplitter

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

READ_BYTES = 256 << 10


class Connection(Protocol):
    """One client, of either port. Thread: reactor."""

    def __init__(self, broker: Broker, address: str, max_request_size: int) -> None:
        self.broker = broker
        self.address = address
        self.principal = ANONYMOUS
        self.opened = self._active = broker.now()
        self.frame_begun: float | None = None
        self.heard = False
        self.n_requests = 0
        self._splitter = FrameSplitter(max_request_size)
        self._frames: deque[bytes] = deque()
        self._held = False
        self._reading = True
        self._gone = False
        self._outbox: Outbox | None = None

    # What each port decides

    def _run(self) -> None:
        """Handle requests that have arrived until one must be waited for."""
        raise NotImplementedError

    def _must_pause(self) -> bool:
        """Whether nothing more is to be read for now, for the sake of what has arrived already."""
        raise NotImplementedError

    def _drained(self) -> None:
        """Everything sent so far has left; called when it had to wait."""
        raise NotImplementedError

    def _in_work(self) -> int:
        """Bytes of whole requests that are being dealt with: in flight as much as those of half a request."""
        return 0

    # Life

    @property
    def active(self) -> float:
        """When a byte last moved, either way."""
        return self._active

    @active.setter
    def active(self, now: float) -> None:
        self._active = now

    def connectionMade(self) -> None:
        """Set the socket up and ask the limits for a place."""
        self._client = cast(Transport, self.transport)
        if self.broker.tls is None:
            cast(Any, self.transport).bufferSize = READ_BYTES
            self._tune(self._client.getHandle())
        kind = Outbox if self.broker.tls is None else CopyingOutbox
        self._outbox = kind(self._client, drained=self._drained, broken=self._broken, sent=self._count_sent)
        self.broker.counters.connections_opened += 1
        self.broker.limits.admit(self)

    def _tune(self, handle: socket.socket) -> None:
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for name, option in (("socket.send.buffer", socket.SO_SNDBUF), ("socket.receive.buffer", socket.SO_RCVBUF)):
            size = self.broker.config[name]
            if isinstance(size, int):
                handle.setsockopt(socket.SOL_SOCKET, option, size)

    def dataReceived(self, data: bytes) -> None:
        """Cut what arrived into requests and handle those that are whole."""
        if self._gone:
            return
        if not self.heard and self.broker.tls is not None:
            self.principal = of_transport(self._client)
        self.heard = True
        self._active = now = self.broker.now()
        try:
            self._frames.extend(self._splitter.feed(data))
        except Kafka2011Error as error:
            self.drop("bad_request", str(error))
            return
        pending = self._splitter.pending
        if self._frames or not pending:
            self.frame_begun = now if pending else None
        elif self.frame_begun is None:
            self.frame_begun = now
        self.broker.limits.partial(self, pending + self._in_work())
        self._run()

    def connectionLost(self, reason: Failure | None = None) -> None:
        """Let go of everything."""
        self._let_go()

    def _let_go(self) -> None:
        """Do nothing more for this client. Called when it is dropped, and again when the connection is gone."""
        self._gone = True
        self._frames.clear()
        if self._outbox is not None:
            self._outbox.close()
        self.broker.limits.forget(self)

    def drop(self, kind: str, reason: str) -> None:
        """Close without an answer; count it, and tell of it now and then."""
        if self._gone:
            return
        self.broker.counters.closed[kind] += 1
        if self.broker.running:
            closed = ConnectionClosed(peer=self.address, principal=str(self.principal), kind=kind, reason=reason)
            self.broker.rate_limit.emit(kind, closed)
        # After a bad request earlier answers may still be on their way to the client; otherwise nothing is waited for.
        # Nor for a client that has left one untaken: Twisted would wait for it without end.
        busy = self._outbox is not None and self._outbox.busy
        orderly = kind == "bad_request" and self.broker.tls is None and not busy
        self._let_go()
        (self._client.loseConnection if orderly else self._client.abortConnection)()

    def hold(self, held: bool) -> None:
        """Stop or go on reading, for the sake of all connections' memory."""
        self._held = held
        self._pause_or_resume()

    def _pause_or_resume(self) -> None:
        if self._gone:
            return
        reading = not (self._held or self._must_pause())
        if reading != self._reading:
            self._reading = reading
            # The frame timeout does not run while reading is paused.
            self.frame_begun = self.broker.now() if reading and self._splitter.pending else None
            (self._client.resumeProducing if reading else self._client.pauseProducing)()

    def _unforeseen(self, error: BaseException) -> None:
        """The broker outlives whatever one request does to it; its connection does not."""
        self.broker.counters.handler_errors += 1
        trace, who = "".join(traceback.format_exception(error, limit=-8)), str(self.principal)
        failed = HandlerFailed(peer=self.address, principal=who, error=repr(error), trace=trace)
        self.broker.rate_limit.emit("handler", failed)
        self.drop("handler_error", repr(error))

    def _broken(self, reason: str) -> None:
        self.drop("send", reason)

    def _count_sent(self, path: str, size: int) -> None:
        self._active = self.broker.now()
        self.broker.counters.sent_bytes[path] += size
