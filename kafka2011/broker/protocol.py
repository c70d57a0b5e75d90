"""One connection: frames in, requests run in order, answers out.

Paper: §3.1. As thin as it can be: ``wire`` reads requests, ``intake`` takes message sets, ``handlers`` answer,
``sendfile`` sends. A connection is strictly sequential (spec §3.1): while an answer is on its way no further request
is looked at and nothing more is read, so a client that asks and never reads costs one read buffer.

    reading   -> answering: a request has an answer the socket does not take at once; reading is paused
    answering -> reading:   the last byte left; requests that already arrived are run first
"""

from __future__ import annotations

import socket
import traceback
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure

from kafka2011.broker import handlers
from kafka2011.broker.events import ConnectionClosed, HandlerFailed
from kafka2011.broker.handlers import Answer
from kafka2011.broker.intake import Intake
from kafka2011.broker.principal import ANONYMOUS, of_transport
from kafka2011.broker.sendfile import CopyingOutbox, Outbox, Transport
from kafka2011.errors import Kafka2011Error, WireError
from kafka2011.wire import (
    AckedProduceRequest,
    FetchRequest,
    FrameSplitter,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    SetSummary,
    parse_request,
)

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

READ_BYTES = 256 << 10
ANSWERS_PER_TURN = 64
"""Then the other connections have their turn, however many requests a client has sent at once."""


class BrokerProtocol(Protocol):
    """Serve one client. Thread: reactor."""

    def __init__(self, broker: Broker, address: str) -> None:
        self.broker = broker
        self.address = address
        self.principal = ANONYMOUS
        self.opened = self.active = broker.now()
        self.frame_begun: float | None = None
        self.heard = False
        self.n_requests = 0
        self._splitter = FrameSplitter(broker.max_request_size)
        self._frames: deque[bytes] = deque()
        self._intake = Intake(broker, address)
        self._sets: deque[ProduceRequest] = deque()
        """What is left of a MULTIPRODUCE, whose sets share a budget."""
        self._budget = broker.request_budget()
        self._waiting = False
        """An answer is not there yet, or it is the turn of others."""
        self._late: Deferred[None] | None = None
        self._held = False
        self._reading = True
        self._gone = False
        self._outbox: Outbox | None = None

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
        """Cut what arrived into requests and run those that are whole."""
        if self._gone:
            return
        if not self.heard and self.broker.tls is not None:
            self.principal = of_transport(self._client)
        self.heard = True
        self.active = now = self.broker.now()
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
        self.broker.limits.partial(self, pending)
        self._run()

    def connectionLost(self, reason: Failure | None = None) -> None:
        """Let go of everything."""
        self._gone = True
        self._frames.clear()
        self._sets.clear()
        if self._late is not None:
            self._late.cancel()
        if self._outbox is not None:
            self._outbox.close()
        self.broker.limits.forget(self)

    def drop(self, kind: str, reason: str) -> None:
        """Close without an answer; count it, and tell of it now and then."""
        if self._gone:
            return
        self.broker.counters.closed[kind] += 1
        if self.broker.running:
            self.broker.seldom.emit(kind, self._closed(kind, reason))
        # After a bad request earlier answers may still be on their way to the client; otherwise nothing is waited for.
        orderly = kind == "bad_request" and self.broker.tls is None
        self.connectionLost()
        (self._client.loseConnection if orderly else self._client.abortConnection)()

    def _closed(self, kind: str, reason: str) -> ConnectionClosed:
        return ConnectionClosed(peer=self.address, principal=str(self.principal), kind=kind, reason=reason)

    def hold(self, held: bool) -> None:
        """Stop or go on reading, for the sake of all connections' memory."""
        self._held = held
        self._pause_or_resume()

    def _run(self) -> None:
        """Run requests until one must be waited for."""
        outbox = self._outbox
        assert outbox is not None
        try:
            self._run_whole_frames(outbox)
        except Kafka2011Error as error:
            self._append_what_came_before()
            self.drop("bad_request", str(error))
        except Exception as error:  # the broker outlives whatever one request does to it
            self._append_what_came_before()
            self._unforeseen(error)
        else:
            if self._splitter.broken is not None and not self._frames and not outbox.busy and not self._waiting:
                self.drop("bad_request", str(self._splitter.broken))
        self._pause_or_resume()

    def _run_whole_frames(self, outbox: Outbox) -> None:
        frames, intake, requests = self._frames, self._intake, self.broker.counters.requests
        n_answers = 0
        intake.new_turn()
        while (frames or self._sets) and not outbox.busy and not self._waiting and not intake.slow_bytes():
            if self._sets:
                self._add_sets()
            else:
                n_produces = intake.take(frames)
                self.n_requests += n_produces
                requests["produce"] += n_produces
            if not frames and not self._sets:
                break
            intake.finish()
            if intake.slow_bytes():
                break
            if n_answers == ANSWERS_PER_TURN or intake.turn_is_over():
                self._waiting = True
                self.broker.reactor.callLater(0, self._go_on)
                break
            n_answers += 1
            self.n_requests += 1
            self._request(frames.popleft(), outbox)
        intake.finish()
        if intake.slow_bytes():
            self._waiting = True
            # Whole, but not dealt with: these bytes are in flight as much as those of half a request.
            self.broker.limits.partial(self, self._splitter.pending + intake.slow_bytes())
            self.broker.unpacking.do(intake.check_slow).addCallbacks(self._slow_checked, self._no_answer)

    def _slow_checked(self, found: list[SetSummary | WireError]) -> None:
        """Take the sets that took long, even if the client has left meanwhile: it was never to get an answer."""
        if not self._gone:
            self.broker.limits.partial(self, self._splitter.pending)
        self._waiting = False
        try:
            self._intake.take_slow(found)
        except Kafka2011Error as error:
            self._append_what_came_before()
            self.drop("bad_request", str(error))
            return
        self._append_what_came_before()
        self._drained()

    def _request(self, frame: bytes, outbox: Outbox) -> None:
        request = parse_request(frame)
        broker = self.broker
        requests = broker.counters.requests
        if isinstance(request, FetchRequest):
            requests["fetch"] += 1
            outbox.send(handlers.fetch(broker, request))
        elif isinstance(request, MultiFetchRequest):
            requests["multifetch"] += 1
            self._answer(handlers.multifetch(broker, request), outbox)
        elif isinstance(request, OffsetsRequest):
            requests["offsets"] += 1
            outbox.send(handlers.offsets(broker, request))
        elif isinstance(request, MultiProduceRequest):
            requests["multiproduce"] += 1
            self._sets, self._budget = deque(request.produces), broker.request_budget()
            self._add_sets()
        elif isinstance(request, AckedProduceRequest):
            requests["acked_produce"] += 1
            self._answer(handlers.acked_produce(broker, request, self.address), outbox)

    def _answer(self, answer: Answer | Deferred[Answer], outbox: Outbox) -> None:
        """Send an answer, now or when it is there."""
        if isinstance(answer, Deferred):
            self._waiting = True
            self._late = answer.addCallbacks(self._late_answer, self._no_answer)
        else:
            outbox.send(answer)

    def _add_sets(self) -> None:
        """Take the sets of a MULTIPRODUCE, as many as a turn allows."""
        while self._sets:
            one = self._sets.popleft()
            self._intake.add(one.topic, one.partition, one.data, self._budget)
            if self._intake.turn_is_over():
                break

    def _unforeseen(self, error: BaseException) -> None:
        self.broker.counters.handler_errors += 1
        trace, who = "".join(traceback.format_exception(error, limit=-8)), str(self.principal)
        failed = HandlerFailed(peer=self.address, principal=who, error=repr(error), trace=trace)
        self.broker.seldom.emit("handler", failed)
        self.drop("handler_error", repr(error))

    def _append_what_came_before(self) -> None:
        try:
            self._intake.finish()
        except Kafka2011Error:
            pass  # a run that ends in a bad set: its good ones are appended, and the connection is closing anyway

    def _late_answer(self, answer: Answer) -> None:
        if not self._gone and self._outbox is not None:
            self._outbox.send(answer)
            self._go_on()

    def _no_answer(self, failure: Failure) -> None:
        if not self._gone and failure.value is not None:
            self._unforeseen(failure.value)

    def _go_on(self) -> None:
        self._waiting = False
        self._drained()

    def _drained(self) -> None:
        """The answer has left; run what arrived meanwhile."""
        self.active = self.broker.now()
        if not self._gone:
            self._run()

    def _broken(self, reason: str) -> None:
        self.drop("send", reason)

    def _count_sent(self, path: str, size: int) -> None:
        self.active = self.broker.now()
        self.broker.counters.sent_bytes[path] += size

    def _pause_or_resume(self) -> None:
        """Read only while nothing is owed to this client."""
        outbox = self._outbox
        if self._gone or outbox is None:
            return
        reading = not (outbox.busy or self._waiting or self._held)
        if reading != self._reading:
            self._reading = reading
            # What we do not read cannot be late.
            self.frame_begun = self.broker.now() if reading and self._splitter.pending else None
            (self._client.resumeProducing if reading else self._client.pauseProducing)()


class BrokerFactory(Factory):
    """Make a protocol for each connection."""

    noisy = False

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def buildProtocol(self, addr: IAddress | None) -> BrokerProtocol:
        """One connection, named by its address."""
        return BrokerProtocol(self._broker, getattr(addr, "host", "unknown"))
