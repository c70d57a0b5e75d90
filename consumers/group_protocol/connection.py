"""One connection to the modern port: requests in, answers out in the same order.

Requests are handled as they arrive, so a Heartbeat behind a parked JoinGroup takes effect at once; their answers leave
in the order of the requests, because that is how clients match them. Reading stops while too many answers are owed or
the client does not take what it is sent. Whatever a request does, it costs at most its own connection.

Spec: modern-group-protocol §1.6.
"""

from __future__ import annotations

import traceback
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from zope.interface import implementer

from consumers.group_protocol.codec import (
    APIS,
    ApiKey,
    Header,
    Struct,
    UnsupportedVersion,
    decode_header,
    decode_request,
    encode_response,
)
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.handlers.call import Answer, Call, Long
from consumers.group_protocol.handlers.table import HANDLERS
from consumers.group_protocol.handlers.versions import offer
from consumers.group_protocol.owed import Owed
from consumers.group_protocol.sasl import Login, LoginRefused
from kafka2011.broker.events import ConnectionClosed, HandlerFailed
from kafka2011.broker.principal import ANONYMOUS, logged_in, of_transport
from kafka2011.errors import Kafka2011Error
from kafka2011.wire.frame import FrameSplitter

if TYPE_CHECKING:
    from consumers.group_protocol.service import Modern

T = TypeVar("T")

LARGE = 64 << 10
"""Bytes of a request that is read in a thread, unless most of it is known to be one blob."""
_BLOBS = (ApiKey.PRODUCE, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)
SLICE_S = 0.02
"""How long the requests of one connection may be handled before others have their turn."""
MAX_OWED = 100
"""Answers owed on one connection before reading stops; clients have a handful under way."""
MOST_BEFORE_LOGIN = 16 << 10
"""Bytes of a request of somebody who has not said who they are: a question of versions, or a message of a login."""
_LOGIN = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
_BEFORE_LOGIN = (ApiKey.API_VERSIONS, *_LOGIN)


@implementer(IPushProducer)
class ModernProtocol(Protocol):
    """Serve one client. Thread: reactor."""

    def __init__(self, modern: Modern, address: str) -> None:
        self.modern = modern
        self.address = address
        self.principal = ANONYMOUS
        self.reached = ""
        self.login: Login | None = None if modern.users is None else Login(modern.users, tls=modern.tls)
        self.told: set[str] = set()
        """What this client was told of once already."""
        self.opened = self._active = modern.broker.now()
        self.frame_begun: float | None = None
        self.heard = False
        self.n_requests = 0
        most = modern.broker.max_request_size
        self._splitter = FrameSplitter(most if self.login is None else min(most, MOST_BEFORE_LOGIN))
        self._frames: deque[bytes] = deque()
        self._owed: deque[Owed] = deque()
        self._login_step: Owed | None = None
        """The last message of the login: nothing behind it is looked at before it is answered."""
        self._alone = 0
        """Bytes of a request that must be dealt with before the next one is looked at."""
        self._held = self._full = self._gone = self._closing = False
        self._reading = True

    @property
    def active(self) -> float:
        """When a byte last moved; a client that waits for us is not idle."""
        return self.modern.broker.now() if self._owed else self._active

    @active.setter
    def active(self, now: float) -> None:
        self._active = now

    def connectionMade(self) -> None:
        """Ask the limits for a place."""
        transport = self._transport
        self.reached = str(getattr(transport.getHost(), "host", ""))
        transport.registerProducer(self, True)
        transport.setTcpNoDelay(True)
        self.modern.broker.counters.connections_opened += 1
        self.modern.broker.limits.admit(self)

    def dataReceived(self, data: bytes) -> None:
        """Cut what arrived into requests and handle those that are whole."""
        if self._gone or self._closing:
            return
        if not self.heard and self.modern.tls:
            self.principal = of_transport(self._transport)
        self.heard = True
        self._active = now = self.modern.broker.now()
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
        self.modern.broker.limits.partial(self, pending + self._alone)
        self._run()

    def connectionLost(self, reason: Failure | None = None) -> None:
        """Let go of everything; what was parked for this client is not waited for any more."""
        self._gone = True
        self._frames.clear()
        self.modern.broker.limits.forget(self)
        self.modern.untaken.taken(self)
        owed, self._owed = self._owed, deque()
        for one in owed:
            if one.doing is not None:
                one.doing.cancel()

    def drop(self, kind: str, reason: str) -> None:
        """Close now, without an answer; count it, and tell of it now and then."""
        if self._gone:
            return
        self._gone = True
        broker = self.modern.broker
        broker.counters.closed[kind] += 1
        closed = ConnectionClosed(peer=self.address, principal=str(self.principal), kind=kind, reason=reason)
        broker.seldom.emit(kind, closed)
        broker.limits.forget(self)
        self._transport.abortConnection()

    def alone(self, size: int, work: Deferred[T]) -> Deferred[T]:
        """Look at no further request until ``work`` on ``size`` bytes of one is done: what follows may build on it."""

        def done(result: T | Failure) -> T | Failure:
            self._alone = 0
            if self._gone:
                return Failure(CancelledError())
            self.modern.broker.limits.partial(self, self._splitter.pending)
            self.modern.reactor.callLater(0, self._run)
            return result

        self._alone = max(size, 1)
        self.modern.broker.limits.partial(self, self._splitter.pending + self._alone)
        return work.addBoth(done)

    def close_after_answers(self) -> None:
        """Read nothing more and close once what is owed has left."""
        self._frames.clear()
        self._closing = True

    def hold(self, held: bool) -> None:
        """Stop or go on reading, for the sake of all connections' memory."""
        self._held = held
        self._pause_or_resume()

    def pauseProducing(self) -> None:
        """The client does not take what it is sent."""
        self._full = True
        self._pause_or_resume()

    def resumeProducing(self) -> None:
        """The client has taken it."""
        self._full = False
        self.modern.untaken.taken(self)
        self._active = self.modern.broker.now()
        self._next_turn()
        self._run()

    def stopProducing(self) -> None:
        """The connection is going; ``connectionLost`` follows."""

    @property
    def _transport(self) -> Any:
        """Twisted's transport, which its zope interfaces describe and a type checker cannot read."""
        return self.transport

    @property
    def _must_wait(self) -> bool:
        """Whether a request that has arrived must wait: too much is owed, who is there is not known yet, or the one
        before it is still being read."""
        login = self._login_step
        return len(self._owed) >= MAX_OWED or (login is not None and not login.done) or self._alone > 0

    def _run(self) -> None:
        until = self.modern.broker.now() + SLICE_S
        while self._frames and not (self._gone or self._full or self._must_wait):
            if self.modern.broker.now() > until:
                # One client's requests, however many have arrived, hold up nobody for longer than this.
                self.modern.reactor.callLater(0, self._run)
                break
            self.n_requests += 1
            try:
                self._request(self._frames.popleft())
            except Kafka2011Error as error:
                self.drop("bad_request", str(error))
        if self._splitter.broken is not None and not self._frames:
            self.drop("bad_request", str(self._splitter.broken))
        self._pause_or_resume()

    def _request(self, frame: bytes) -> None:
        if self.login is not None and self.login.raw and not self.login.done:
            # SaslHandshake version 0 is followed by bare login messages; a refusal has no other form than a close.
            owed = self._login_step = self._owe()
            step = Deferred.fromCoroutine(self.modern.logins.step(self, self.login, frame))
            owed.doing = step.addCallback(self._raw_step, owed).addErrback(self._failed, owed)
            return
        header = decode_header(frame)
        try:
            key = ApiKey(header.key)
            if key is ApiKey.API_VERSIONS and not APIS[key].first <= header.version <= APIS[key].last:
                # The one question that must be answered whatever its version: with the oldest answer there is.
                body = offer(self.modern, ErrorCode.UNSUPPORTED_VERSION)
                self._answer_now(encode_response(key, 0, header.correlation, body))
                return
            if self.login is not None and not self.login.done and key not in _BEFORE_LOGIN:
                self.drop("not_authenticated", f"{key.name} before the client said who it is")
                return
            if len(frame) <= LARGE or key in _BLOBS:
                self._handle(key, header, decode_request(frame, header), self._owe())
                return
        except ValueError:
            raise UnsupportedVersion(f"request key {header.key} is not offered") from None
        # Tens of thousands of items take tens of milliseconds to read. Those behind it wait: order is part of meaning.
        owed = self._owe()
        reading = self.alone(len(frame), self.modern.broker.unpacking.do(lambda: decode_request(frame, header)))
        owed.doing = reading.addCallback(lambda body: self._handle(key, header, body, owed))
        owed.doing.addErrback(self._failed, owed)

    def _handle(self, key: ApiKey, header: Header, body: Struct, owed: Owed) -> None:
        self.modern.broker.counters.requests[f"modern_{key.name.lower()}"] += 1
        if key in _LOGIN:
            self._login_step = owed
        call = Call(header, body, self, lambda: self._turn_of(owed))
        handling = Deferred.fromCoroutine(HANDLERS[key](self.modern, call))
        owed.doing = handling.addCallback(self._handled, owed, header).addErrback(self._failed, owed)

    def _owe(self) -> Owed:
        owed = Owed()
        self._owed.append(owed)
        return owed

    def _answer_now(self, parts: list[bytes]) -> None:
        self._encoded(parts, self._owe())

    def _raw_step(self, token: bytes, owed: Owed) -> None:
        self._encoded([len(token).to_bytes(4, "big"), token], owed)

    def _handled(self, body: Answer | None, owed: Owed, header: Header) -> None:
        if isinstance(body, Long):
            rows = body.body
            writing = self.modern.packing.do(
                lambda: encode_response(header.key, header.version, header.correlation, rows)
            )
            owed.doing = writing.addCallback(self._encoded, owed).addErrback(self._failed, owed)
            return
        self._encoded(
            [] if body is None else encode_response(header.key, header.version, header.correlation, body), owed
        )

    def _encoded(self, parts: list[bytes], owed: Owed) -> None:
        owed.parts, owed.done = parts, True
        self._send()

    def _failed(self, failure: Failure, owed: Owed) -> None:
        owed.done = True
        if failure.check(CancelledError) or self._gone:
            return
        if failure.check(LoginRefused):
            self._send()
            return
        if failure.check(Kafka2011Error):
            self.drop("bad_request", failure.getErrorMessage())
            return
        broker = self.modern.broker
        broker.counters.handler_errors += 1
        trace = "".join(traceback.format_exception(failure.value, limit=-8))
        failed = HandlerFailed(
            peer=self.address, principal=str(self.principal), error=repr(failure.value), trace=trace
        )
        broker.seldom.emit("handler", failed)
        self.drop("handler_error", repr(failure.value))

    def _turn_of(self, owed: Owed) -> Deferred[None]:
        """Fire when the answer is the next to leave and the client takes what it is sent."""
        owed.turn = Deferred()
        self._next_turn()
        return owed.turn

    def _next_turn(self) -> None:
        first = self._owed[0] if self._owed and not self._full else None
        if first is not None and first.turn is not None and not first.turn.called:
            first.turn.callback(None)

    def _send(self) -> None:
        """Send every answer whose turn has come."""
        if self._gone:
            return
        if self.login is not None and self.login.done and self.principal.kind != "login":
            self.principal = logged_in(self.login.user or "")
            self._splitter.max_size = self.modern.broker.max_request_size
        ready: list[bytes] = []
        while self._owed and self._owed[0].done:
            ready += self._owed.popleft().parts
        if ready:
            self._active = self.modern.broker.now()
            self._transport.writeSequence(ready)
            if self._full:
                self.modern.untaken.add(self, sum(map(len, ready)))
        if self._closing and not self._owed:
            # Twisted keeps a connection open for as long as it has a producer.
            self._transport.unregisterProducer()
            self._transport.loseConnection()
            return
        self._next_turn()
        if not self._reading:
            self.modern.reactor.callLater(0, self._run)

    def _pause_or_resume(self) -> None:
        if self._gone:
            return
        reading = not (self._full or self._held or self._closing or self._must_wait)
        if reading != self._reading:
            self._reading = reading
            # What we do not read cannot be late.
            self.frame_begun = self.modern.broker.now() if reading and self._splitter.pending else None
            (self._transport.resumeProducing if reading else self._transport.pauseProducing)()
