"""One connection to the modern port: requests in, answers out in the same order.

Requests are handled as they arrive, so a Heartbeat behind a parked JoinGroup takes effect at once; their answers leave
in the order of the requests, because that is how clients match them. Reading stops while too many answers are owed or
the client does not take what it is sent. Whatever a request does, it costs at most its own connection.

See docs/modern-port.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from kafka2011.broker.connection import Connection
from kafka2011.broker.principal import logged_in
from kafka2011.errors import Kafka2011Error
from kafka2011.wire.file_range import FileRange
from since2011.server.handlers.call import Answer, Call, Long
from since2011.server.handlers.versions import offer
from since2011.server.owed import Owed
from since2011.server.sasl import Login, LoginRefused
from since2011.wire.codec import (
    APIS,
    ApiKey,
    Header,
    Struct,
    UnsupportedVersion,
    decode_header,
    decode_request,
    encode_response,
)
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.service import ModernBroker

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


class ModernProtocol(Connection):
    """Serve one client. Thread: reactor."""

    def __init__(self, modern: ModernBroker, address: str) -> None:
        self.modern = modern
        self.reached = ""
        self.login: Login | None = None if modern.users is None else Login(modern.users, tls=modern.tls)
        most = modern.broker.max_request_size
        super().__init__(modern.broker, address, most if self.login is None else min(most, MOST_BEFORE_LOGIN))
        self.told: set[str] = set()
        """What this client was told of once already."""
        self._owed: deque[Owed] = deque()
        self._login_step: Owed | None = None
        """The last message of the login: nothing behind it is looked at before it is answered."""
        self._alone = 0
        """Bytes of a request that must be dealt with before the next one is looked at."""
        self._closing = False
        self._when_lost: list[Callable[[], None]] = []

    @property
    def active(self) -> float:
        """When a byte last moved; a client that waits for us is not idle."""
        return self.broker.now() if self._owed else self._active

    @active.setter
    def active(self, now: float) -> None:
        self._active = now

    def connectionMade(self) -> None:
        """Remember which of our addresses the client has reached."""
        self.reached = str(getattr(cast(Any, self.transport).getHost(), "host", ""))
        super().connectionMade()

    def dataReceived(self, data: bytes) -> None:
        """Cut what arrived into requests, unless this client is only waiting for its last answers."""
        if not self._closing:
            super().dataReceived(data)

    def connectionLost(self, reason: Failure | None = None) -> None:
        """Let go of everything; what was parked for this client is not waited for any more."""
        super().connectionLost(reason)
        self.modern.untaken.taken(self)
        owed, self._owed = self._owed, deque()
        for one in owed:
            one.give_up()
        for tell in self._when_lost:
            tell()

    def when_lost(self, tell: Callable[[], None]) -> None:
        """Call ``tell`` when the connection is closed."""
        self._when_lost.append(tell)

    def _in_work(self) -> int:
        return self._alone

    def alone(self, size: int, work: Deferred[T]) -> Deferred[T]:
        """Look at no further request until ``work`` on ``size`` bytes of one is done: what follows may build on it."""

        def done(result: T | Failure) -> T | Failure:
            self._alone = 0
            if self._gone:
                return Failure(CancelledError())
            self.broker.limits.partial(self, self._splitter.pending)
            self.modern.reactor.callLater(0, self._run)
            return result

        self._alone = max(size, 1)
        self.broker.limits.partial(self, self._splitter.pending + self._alone)
        return work.addBoth(done)

    def close_after_answers(self) -> None:
        """Read nothing more and close once what is owed has left."""
        self._frames.clear()
        self._closing = True

    @property
    def _full(self) -> bool:
        """Whether the client has not taken yet what it was sent."""
        return self._outbox is not None and self._outbox.busy

    @property
    def _must_wait(self) -> bool:
        """Whether a request that has arrived must wait: too much is owed, who is there is not known yet, or the one
        before it is still being read."""
        login = self._login_step
        return len(self._owed) >= MAX_OWED or (login is not None and not login.done) or self._alone > 0

    def _must_pause(self) -> bool:
        return self._full or self._closing or self._must_wait

    def _drained(self) -> None:
        """The client has taken everything."""
        self.modern.untaken.taken(self)
        self._active = self.broker.now()
        if self._closing and not self._owed:
            self._client.loseConnection()
            return
        self._next_turn()
        self._run()

    def _run(self) -> None:
        until = self.broker.now() + SLICE_S
        while self._frames and not (self._gone or self._full or self._must_wait):
            if self.broker.now() > until:
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
        reading = self.alone(len(frame), self.broker.unpacking.do(lambda: decode_request(frame, header)))
        owed.doing = reading.addCallback(lambda body: self._handle(key, header, body, owed))
        owed.doing.addErrback(self._failed, owed)

    def _handle(self, key: ApiKey, header: Header, body: Struct, owed: Owed) -> None:
        handler = self.modern.handlers.get(key)
        if handler is None:
            raise UnsupportedVersion(f"request key {header.key} is not offered")
        self.broker.counters.requests[f"modern_{key.name.lower()}"] += 1
        if key in _LOGIN:
            self._login_step = owed
        call = Call(header, body, self, lambda: self._turn_of(owed))
        handling = Deferred.fromCoroutine(handler(call))
        owed.doing = handling.addCallback(self._handled, owed, header).addErrback(self._failed, owed)

    def _owe(self) -> Owed:
        owed = Owed()
        self._owed.append(owed)
        return owed

    def _answer_now(self, parts: list[bytes | FileRange]) -> None:
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

    def _encoded(self, parts: list[bytes | FileRange], owed: Owed) -> None:
        owed.parts, owed.done = parts, True
        if self._gone:
            owed.give_up()
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
        if failure.value is not None:
            self._unforeseen(failure.value)

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
            self._splitter.max_size = self.broker.max_request_size
        ready: list[bytes | FileRange] = []
        while self._owed and self._owed[0].done:
            ready += self._owed.popleft().parts
        if ready and self._outbox is not None:
            self._active = self.broker.now()
            self._outbox.send(ready)
            if self._full:
                self.modern.untaken.add(self, sum(len(part) for part in ready if isinstance(part, bytes)))
        self._go_on()

    def _go_on(self) -> None:
        """What may have waited for the answers before it goes on, unless sending them has failed."""
        if self._gone:
            return
        if self._closing and not self._owed:
            if not self._full:
                self._client.loseConnection()
            return
        self._next_turn()
        if not self._reading:
            self.modern.reactor.callLater(0, self._run)
