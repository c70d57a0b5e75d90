"""A connection to another broker's modern port: one request, its answer, the next one. Bounded memory."""

from __future__ import annotations

from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.protocol import ClientCreator, Protocol
from twisted.python.failure import Failure

from kafka2011.broker.reactor import Reactor, in_time
from kafka2011.errors import ConnectionFailed
from since2011.wire.codec import ApiKey, Struct, decode_response, encode_request

MAX_ANSWER = 128 << 20
"""Bytes of one answer, far above any that was asked for: what is larger is no Kafka broker."""


class Peer(Protocol):
    """The asking end. Thread: reactor."""

    def __init__(self, client_id: str, max_answer: int = MAX_ANSWER) -> None:
        self._client_id, self._max_answer = client_id, max_answer
        self._buffer = bytearray()
        self._number = 0
        self._asked: tuple[ApiKey, int, Deferred[Struct]] | None = None
        self.gone = False

    def connectionMade(self) -> None:
        """Small requests leave at once."""
        cast(Any, self.transport).setTcpNoDelay(True)

    def ask(self, key: ApiKey, version: int, body: Struct) -> Deferred[Struct]:
        """Fire with the answer; fail with ConnectionFailed."""
        assert self._asked is None, "one request at a time"
        answer: Deferred[Struct] = Deferred(lambda _: self.abort())
        if self.gone:
            answer.errback(ConnectionFailed("the connection is closed"))
            return answer
        self._number += 1
        self._asked = key, version, answer
        cast(Any, self.transport).writeSequence(encode_request(key, version, self._number, self._client_id, body))
        return answer

    def dataReceived(self, data: bytes) -> None:
        """Collect the answer."""
        self._buffer += data
        if len(self._buffer) < 4:
            return
        size = int.from_bytes(self._buffer[:4], "big", signed=True)
        if not 4 <= size <= self._max_answer or self._asked is None:
            self._broken(f"{size} bytes that were not asked for")
            return
        if len(self._buffer) < 4 + size:
            return
        key, version, waiting = self._asked
        self._asked = None
        frame = bytes(memoryview(self._buffer)[4 : 4 + size])
        del self._buffer[: 4 + size]
        try:
            correlation, answer = decode_response(key, version, frame)
        except Exception as error:  # whatever a stranger sends costs its own connection
            self._asked = key, version, waiting
            self._broken(f"an answer that cannot be read: {error}")
            return
        if correlation != self._number:
            self._asked = key, version, waiting
            self._broken("the answer to another request")
            return
        waiting.callback(answer)

    def connectionLost(self, reason: Failure | None = None) -> None:
        """Nobody will answer."""
        self.gone = True
        self._fail("the connection was closed" if reason is None else reason.getErrorMessage())

    def abort(self) -> None:
        """Close it at once."""
        if not self.gone:
            self.gone = True
            cast(Any, self.transport).abortConnection()

    def _broken(self, why: str) -> None:
        self.abort()
        self._fail(why)

    def _fail(self, why: str) -> None:
        asked, self._asked = self._asked, None
        if asked is not None and not asked[2].called:
            asked[2].errback(ConnectionFailed(why))


async def connect(reactor: Reactor, host: str, port: int, client_id: str, timeout_s: float) -> Peer:
    """A connection to a broker; raises ConnectionFailed."""
    creator = ClientCreator(cast(Any, reactor), Peer, client_id)
    try:
        peer: Peer = await creator.connectTCP(host, port, timeout=timeout_s)
    except Exception as error:  # Twisted has a class for each way of not being connected
        raise ConnectionFailed(f"{host}:{port} cannot be reached: {error}") from error
    return peer


def ask_within(
    reactor: Reactor, peer: Peer, seconds: float, key: ApiKey, version: int, body: Struct
) -> Deferred[Struct]:
    """Ask, and close the connection if no answer comes in time."""
    return in_time(reactor, seconds, peer.ask(key, version, body), f"{key.name} was not answered")
