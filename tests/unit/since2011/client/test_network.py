"""The connections of a client, against a broker that does what the test says."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kafka2011.clock import SYSTEM_CLOCK
from since2011.client.backoff import Backoff
from since2011.client.network import Answered, Event, Lost, Network
from since2011.wire.codec import ApiKey, Header, Struct
from tests.unit.since2011.client.scripted_broker import HANG_UP, Script, ScriptedBroker
from tests.waiting import until

QUICK = Backoff(0.001, 0.002)


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network(client_id="test", clock=SYSTEM_CLOCK, backoff=QUICK, request_timeout_s=60.0)
    yield made
    made.close()


def open_to(network: Network, broker: ScriptedBroker) -> None:
    """Wait for a connection."""

    def is_open() -> bool:
        network.poll(0.0)
        return network.ready(1, ("127.0.0.1", broker.port))

    until(is_open, "the connection is open")


def events(network: Network, count: int) -> list[Event]:
    """So many of them."""
    found: list[Event] = []
    until(lambda: len(found) >= count or bool(found.extend(network.poll(0.05))), f"{count} events")
    return found


def ask(network: Network, tag: object) -> None:
    network.send(1, ApiKey.INIT_PRODUCER_ID, 4, Struct(transactional_id=None, txn_timeout_ms=1), tag)


def numbering() -> Script:
    """Answers each question with its number."""
    given = iter(range(1000))
    return lambda header, body: Struct(error=0, producer_id=next(given), epoch=0)


def test_requests_in_flight_are_answered_in_order(network: Network) -> None:
    """Issue 28.3: several requests may be under way; each answer comes with its own tag."""
    with ScriptedBroker(numbering()) as broker:
        open_to(network, broker)
        for tag in range(5):
            ask(network, tag)

        assert network.in_flight(1) == 5
        got = events(network, 5)

    assert [(one.tag, one.body.producer_id) for one in got if isinstance(one, Answered)] == [(n, n) for n in range(5)]
    assert network.in_flight(1) == 0


def test_every_request_of_a_broken_connection_is_lost_once(network: Network) -> None:
    """Issue 28.3: what was in flight on a connection that breaks is reported, each request exactly once."""
    seen = []

    def script(header: Header, body: Struct) -> Struct | str:
        seen.append(header)
        return HANG_UP if len(seen) == 2 else Struct(error=0, producer_id=7, epoch=0)

    with ScriptedBroker(script) as broker:
        open_to(network, broker)
        for tag in range(4):
            ask(network, tag)
        got = events(network, 4)

        assert [(type(one), one.tag) for one in got] == [(Answered, 0), (Lost, 1), (Lost, 2), (Lost, 3)]
        open_to(network, broker)
        ask(network, "after")
        assert [one.tag for one in events(network, 1)] == ["after"]
    assert broker.connections == 2


def test_a_silent_broker_is_left() -> None:
    """request.timeout.ms: no answer in time, and the connection is dropped."""
    network = Network(client_id="test", clock=SYSTEM_CLOCK, backoff=QUICK, request_timeout_s=0.2)
    with ScriptedBroker(lambda header, body: None) as broker:
        open_to(network, broker)
        ask(network, "unanswered")
        (lost,) = events(network, 1)
    network.close()

    assert isinstance(lost, Lost) and lost.tag == "unanswered" and "did not answer" in str(lost.error)


def test_a_request_the_broker_does_not_know_is_lost_at_once(network: Network) -> None:
    """The versions a broker offers are asked for once; what it does not offer is not sent."""
    with ScriptedBroker(numbering()) as broker:
        open_to(network, broker)
        network.send(1, ApiKey.FIND_COORDINATOR, 3, Struct(key="g"), "tag")
        (lost,) = events(network, 1)

        assert isinstance(lost, Lost) and not lost.error.retriable and "FIND_COORDINATOR" in str(lost.error)
        assert network.ready(1, ("127.0.0.1", broker.port))


def test_nobody_listens(network: Network) -> None:
    """A broker that cannot be reached is tried again after a back-off, and the reason is kept."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # and does not listen
        port = deaf.getsockname()[1]

        def failed() -> bool:
            network.poll(0.01)
            return not network.ready(1, ("127.0.0.1", port)) and network.last_failure is not None

        until(failed, "the failure is known")
    assert "cannot reach" in str(network.last_failure)
