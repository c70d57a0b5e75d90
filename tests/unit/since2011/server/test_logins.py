"""Logins on a connection whose clock and threads the test moves: refusals are final, slow and told of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from kafka2011.broker.limits import Limits, LimitSettings
from kafka2011.broker.rate_limit import RateLimit
from kafka2011.clock import ManualClock
from kafka2011.events import Journal
from since2011.server.connection import MOST_BEFORE_LOGIN, ModernProtocol
from since2011.server.events import SaslRefused
from since2011.server.handlers.table import HANDLERS
from since2011.server.logins import MOST_WAITING, REFUSAL_PAUSE_S, Logins
from since2011.server.sasl import PLAIN, SCRAM
from since2011.server.users import Users
from since2011.wire.codec import APIS, ApiKey, Struct, decode_response, encode_request
from since2011.wire.error_codes import ErrorCode
from tests.unit.broker.test_service import TestReactor

USERS = Users({"alice": "wonderland"})
LOGIN_KEYS = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
RIGHT, WRONG = b"\0alice\0wonderland", b"\0alice\0guess"


class Threads:
    """A pool whose work is done when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []

    def start(self) -> None: ...

    def callInThreadWithCallback(
        self, told: Callable[[bool, Any], None], work: Callable[..., Any], *args: Any, **options: Any
    ) -> None:
        def job() -> None:
            try:
                result = work(*args, **options)
            except Exception as error:
                told(False, Failure(error))
            else:
                told(True, result)

        self.jobs.append(job)


class Transport(StringTransport):
    """A transport in memory, and its socket, which takes everything at once."""

    def getHandle(self) -> Transport:
        return self

    def setsockopt(self, level: int, option: int, value: int) -> None: ...

    def send(self, data: bytes, flags: int = 0) -> int:
        self.write(data)
        return len(data)


class Door:
    """A broker's modern port that asks for a login, without the broker."""

    def __init__(self) -> None:
        self.reactor, self.threads, clock = TestReactor(), Threads(), ManualClock()
        self.journal = Journal()
        self.events: list[Any] = []
        self.journal.subscribe(lambda entry: self.events.append(entry.event))
        rate_limit = RateLimit(self.journal, clock)
        broker = SimpleNamespace(
            now=self.reactor.seconds,
            max_request_size=8 << 20,
            running=True,
            tls=None,
            config={"socket.send.buffer": None, "socket.receive.buffer": None},
            limits=Limits(LimitSettings(), self.reactor.seconds),
            counters=SimpleNamespace(closed=Counter(), requests=Counter(), connections_opened=0, handler_errors=0),
            rate_limit=rate_limit,
        )
        self.modern = SimpleNamespace(
            broker=broker,
            reactor=self.reactor,
            users=USERS,
            tls=True,
            untaken=SimpleNamespace(taken=lambda connection: None),
            logins=Logins(self.reactor, rate_limit, self.threads),  # type: ignore[arg-type]
        )
        self.modern.handlers = {key: partial(handler, self.modern) for key, handler in HANDLERS.items()}

    def connect(self, address: str = "10.0.0.1") -> tuple[ModernProtocol, Transport]:
        protocol, transport = ModernProtocol(self.modern, address), Transport()  # type: ignore[arg-type]
        protocol.makeConnection(transport)
        return protocol, transport

    def work(self) -> int:
        """Let the threads do what they were given, and the reactor hear of it."""
        jobs, self.threads.jobs = self.threads.jobs, []
        for job in jobs:
            job()
        self.reactor.turn()
        self.reactor.advance(0)
        return len(jobs)


def handshake(version: int, mechanism: str = PLAIN) -> bytes:
    return b"".join(encode_request(ApiKey.SASL_HANDSHAKE, version, 1, "test", Struct(mechanism=mechanism)))


def authenticate(message: bytes) -> bytes:
    return b"".join(encode_request(ApiKey.SASL_AUTHENTICATE, 1, 2, "test", Struct(auth=message)))


def frames(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found


@pytest.fixture
def door() -> Door:
    return Door()


def test_a_refusal_is_final(door: Door) -> None:
    """Issue 20 B3: 90 wrong guesses and the right one in one write: the first refusal is the last answer."""
    protocol, transport = door.connect()
    protocol.dataReceived(handshake(1) + authenticate(WRONG) * 90 + authenticate(RIGHT))
    n_hashed = 0
    while door.threads.jobs:
        n_hashed += door.work()
    protocol.dataReceived(authenticate(RIGHT))
    assert len(frames(transport.value())) == 1, "no refusal before the pause"
    door.reactor.advance(REFUSAL_PAUSE_S)

    _, answer = decode_response(ApiKey.SASL_AUTHENTICATE, 1, frames(transport.value())[-1])
    assert answer.error == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert (n_hashed, len(frames(transport.value()))) == (1, 2)
    assert transport.disconnecting and protocol.login is not None and not protocol.login.done
    protocol.dataReceived(authenticate(RIGHT))
    assert not door.threads.jobs and not protocol.login.done


def test_version_0_pauses_and_tells_too(door: Door) -> None:
    """Issue 20 B3: behind a handshake of version 0 a refusal costs the same pause and is told of the same way."""
    protocol, transport = door.connect()
    bare = len(WRONG).to_bytes(4, "big") + WRONG
    protocol.dataReceived(handshake(0) + bare * 3 + len(RIGHT).to_bytes(4, "big") + RIGHT)
    door.work()
    assert [event.user for event in door.events if isinstance(event, SaslRefused)] == ["alice"]
    assert not transport.disconnecting and not door.threads.jobs
    door.reactor.advance(REFUSAL_PAUSE_S)

    assert transport.disconnecting
    assert len(frames(transport.value())) == 1, "only the handshake was answered"


def test_version_0_lets_the_right_one_in(door: Door) -> None:
    """A bare login message with the right password is answered with a bare, empty one (RFC 4616)."""
    protocol, transport = door.connect()
    protocol.dataReceived(handshake(0) + len(RIGHT).to_bytes(4, "big") + RIGHT)
    door.work()

    assert frames(transport.value())[1:] == [b""]
    assert str(protocol.principal) == "login:alice"


def test_an_unknown_mechanism_is_a_refusal(door: Door) -> None:
    """Issue 20 B3: asking for one mechanism after the other is guessing too: told, paused, closed."""
    protocol, transport = door.connect()
    protocol.dataReceived(handshake(1, "GSSAPI") + handshake(1))
    door.reactor.advance(REFUSAL_PAUSE_S)

    assert len(frames(transport.value())) == 1 and transport.disconnecting
    assert [event.mechanism for event in door.events] == ["none"]


def test_the_reactor_never_hashes(door: Door) -> None:
    """Issue 20 B3: a step waits for a thread; nothing behind it on its connection is looked at meanwhile."""
    protocol, transport = door.connect()
    metadata = b"".join(encode_request(ApiKey.METADATA, 1, 3, "test", Struct(topics=None)))
    protocol.dataReceived(handshake(1) + authenticate(RIGHT) + metadata)

    assert len(door.threads.jobs) == 1 and len(frames(transport.value())) == 1
    assert protocol.login is not None and not protocol.login.done
    assert door.modern.broker.counters.requests["modern_metadata"] == 0 and not transport.disconnecting


def test_one_address_hashes_one_at_a_time_and_its_line_is_bounded(door: Door) -> None:
    """Issue 20 B3: a hundred guesses of one address put one before a bystander's login, and some are refused."""
    crowd = [door.connect() for _ in range(MOST_WAITING + 36)]
    for protocol, _ in crowd:
        protocol.dataReceived(handshake(1) + authenticate(WRONG))
    bystander, transport = door.connect("10.0.0.2")
    bystander.dataReceived(handshake(1) + authenticate(RIGHT))
    assert len(door.threads.jobs) == 2
    door.work()
    assert str(bystander.principal) == "login:alice" and len(frames(transport.value())) == 2
    door.reactor.advance(REFUSAL_PAUSE_S)
    told = [decode_response(ApiKey.SASL_AUTHENTICATE, 1, frames(t.value())[1])[1] for _, t in crowd if t.disconnecting]

    assert sum("too many logins" in answer.error_message for answer in told) == 100 - 1 - MOST_WAITING
    while door.threads.jobs:
        assert door.work() == 1


def test_a_flood_of_refusals_is_one_event(door: Door) -> None:
    """Issue 20 B3: a thousand wrong passwords do not become a thousand lines; the number left out is told."""
    for n in range(20):
        protocol, _ = door.connect(f"10.0.1.{n}")
        protocol.dataReceived(handshake(1) + authenticate(WRONG))
    door.work()

    assert len(door.events) == 1


def test_who_hangs_up_keeps_its_place_until_the_thread_is_free(door: Door) -> None:
    """Issue 20 B3: connecting, guessing and hanging up at once does not fill the threads' queue."""
    for _ in range(50):
        protocol, _ = door.connect()
        protocol.dataReceived(handshake(1) + authenticate(WRONG))
        protocol.connectionLost()

    assert len(door.threads.jobs) == 1
    door.work()
    assert not door.threads.jobs


def test_before_the_login_requests_are_small(door: Door) -> None:
    """Issue 20 C5: who has not said who they are cannot make the broker hold megabytes."""
    protocol, transport = door.connect()
    protocol.dataReceived((MOST_BEFORE_LOGIN + 1).to_bytes(4, "big"))
    assert transport.disconnecting
    protocol, transport = door.connect()
    protocol.dataReceived(handshake(1) + authenticate(RIGHT))
    door.work()
    protocol.dataReceived((MOST_BEFORE_LOGIN + 1).to_bytes(4, "big"))
    assert not transport.disconnected


def test_a_login_ends_once(door: Door) -> None:
    """After the login a second one is an error of the client's and changes nothing (KIP-368 is not offered)."""
    protocol, transport = door.connect()
    protocol.dataReceived(handshake(1) + authenticate(RIGHT))
    door.work()
    protocol.dataReceived(handshake(1, SCRAM) + authenticate(WRONG))

    _, answer = decode_response(ApiKey.SASL_AUTHENTICATE, 1, frames(transport.value())[-1])
    assert answer.error == ErrorCode.ILLEGAL_SASL_STATE
    assert str(protocol.principal) == "login:alice" and not transport.disconnecting


@pytest.mark.parametrize("key", sorted(set(APIS) - {ApiKey.API_VERSIONS, *LOGIN_KEYS}))
def test_no_handler_is_reached_before_the_login(door: Door, monkeypatch: pytest.MonkeyPatch, key: ApiKey) -> None:
    """Issue 20 C5: authentication comes first: nothing of any other request is parsed or answered before it."""
    parsed: list[object] = []
    monkeypatch.setattr("since2011.server.connection.decode_request", lambda *args: parsed.append(args))
    protocol, transport = door.connect()
    frame = key.to_bytes(2, "big") + b"\0\0" + b"\0\0\0\7" + b"\xff\xff" + b"\xff" * 100
    protocol.dataReceived(len(frame).to_bytes(4, "big") + frame)

    assert transport.disconnected and parsed == [] and transport.value() == b""
    assert door.modern.broker.counters.closed == {"not_authenticated": 1}
