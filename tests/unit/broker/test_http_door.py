"""HTTP before anybody looks at a request: lengths, forms, hosts, numbers, connections. Issue 20 C1 and C4, 19 B10."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransport
from twisted.web.server import NOT_DONE_YET, Request

from kafka2011.broker.http_door import (
    BadRequest,
    CountedConnection,
    CountingFactory,
    GuardedResource,
    guarded_site,
    host_name,
    origin_name,
    query,
    whole_number,
)

MOST = 100


class Echo(GuardedResource):
    """Answers with what it got."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.asked = 0
        super().__init__(self.told.append)

    def answer(self, request: Request) -> bytes | int:
        self.asked += 1
        if request.path == b"/stream":
            return NOT_DONE_YET
        if request.path == b"/boom":
            raise ZeroDivisionError("nobody thought of this")
        body = request.content.read().decode() if request.content else ""
        return json.dumps({"query": query(request), "body": body, "kind": request.content_kind.decode()}).encode()  # type: ignore[attr-defined]


class Client:
    """One connection to a site in memory."""

    def __init__(self, site: CountingFactory, address: str = "10.0.0.1") -> None:
        self.transport = StringTransport()
        self.connection: CountedConnection = site.buildProtocol(IPv4Address("TCP", address, 1))
        self.connection.makeConnection(self.transport)

    def say(self, head: str, body: bytes = b"") -> bytes:
        before = len(self.transport.value())
        self.connection.dataReceived(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
        return self.transport.value()[before:]


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def site(echo: Echo) -> CountingFactory:
    return guarded_site(echo, lambda: 0.0, most_body=MOST, connections=4)


def test_a_large_body_is_refused_when_it_is_announced(echo: Echo, site: CountingFactory) -> None:
    """Issue 20 C1: 16 MiB of a form: refused at its Content-Length, not one byte of it is kept or taken apart."""
    client = Client(site)
    kind = "application/x-www-form-urlencoded"
    answer = client.say(f"POST / HTTP/1.1\nHost: h\nContent-Type: {kind}\nContent-Length: {16 << 20}")

    assert answer.startswith(b"HTTP/1.1 413 ") and client.transport.disconnecting
    assert echo.asked == 0


def test_a_body_that_is_not_announced_is_refused_as_it_grows(echo: Echo, site: CountingFactory) -> None:
    """Issue 20 C1: chunks are counted; over the limit the connection ends, and the request is never looked at."""
    client = Client(site)
    chunk = b"32\r\n" + b"x" * 50 + b"\r\n"
    client.say("POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked", chunk * 2)
    assert not client.transport.disconnecting
    client.connection.dataReceived(chunk + b"0\r\n\r\n")

    assert client.transport.disconnecting and echo.asked == 0


def test_a_form_is_never_taken_apart(site: CountingFactory) -> None:
    """Issue 20 C1: a small form arrives as bytes; its fields are no part of the question."""
    kind = "application/x-www-form-urlencoded"
    answer = Client(site).say(f"POST /?a=1 HTTP/1.1\nHost: h\nContent-Type: {kind}\nContent-Length: 7", b"a=2&b=3")

    assert json.loads(answer.rpartition(b"\r\n\r\n")[2]) == {"query": {"a": "1"}, "body": "a=2&b=3", "kind": kind}


@pytest.mark.parametrize("uri", ["/?%ff=1", "/?a=%ff", "/?%c3%28=1"])
def test_a_question_that_is_not_utf_8_is_400(echo: Echo, site: CountingFactory, uri: str) -> None:
    """Issue 20 C4: bad UTF-8 in a query is one line, not a traceback."""
    answer = Client(site).say(f"GET {uri} HTTP/1.1\nHost: h")

    assert answer.startswith(b"HTTP/1.1 400 ") and answer.endswith(b"\r\n\r\nthe question is not UTF-8\n")
    assert echo.told == []


def test_what_nobody_foresaw_is_one_line_and_an_event(echo: Echo, site: CountingFactory) -> None:
    """Issue 20 C4: an unforeseen error says nothing of the inside to the client and everything to the log."""
    answer = Client(site).say("GET /boom HTTP/1.1\nHost: h")

    assert answer.startswith(b"HTTP/1.1 500 ") and b"nobody thought" not in answer and b"Traceback" not in answer
    assert ["nobody thought of this" in event.trace for event in echo.told] == [True]


@pytest.mark.parametrize("text", ["", "²", "-1", "1.0", "٣", "9" * 5000, "1" * 19, " 1"])
def test_only_whole_numbers_are_numbers(text: str) -> None:
    """Issue 20 C4, 19 B10: superscripts, other scripts' digits and 5,000 digits are refused, not passed to int()."""
    with pytest.raises(BadRequest, match="since must be a whole number"):
        whole_number(text, "since")
    assert whole_number("9" * 18, "since") == 10**18 - 1


@pytest.mark.parametrize("read", [host_name, lambda host: origin_name(f"http://{host}")])
@pytest.mark.parametrize("host", ["[", "[::1", "[::1]x", "[]["])
def test_half_a_bracket_is_no_host(read: Callable[[str], str], host: str) -> None:
    """Issue 20 C4: Host and Origin with an open bracket are refused."""
    with pytest.raises(BadRequest, match="is not a host"):
        read(host)


def test_hosts_and_origins_are_read() -> None:
    """The name without the port, in lower case; an origin of another kind has none."""
    assert [host_name(h) for h in ("Node1:80", "[::1]:80", "[::1]", "")] == ["node1", "::1", "::1", ""]
    assert [origin_name(origin) for origin in ("http://A:1", "https://[::1]:2")] == ["a", "::1"]
    assert [origin_name(origin) for origin in ("null", "", "file:///x")] == ["", "", ""]


def test_streams_count_against_the_limit(site: CountingFactory) -> None:
    """Issue 20 C4: streams hold places; at the limit one of the address with the most gives way to a newcomer."""
    crowd = [Client(site) for _ in range(2)] + [Client(site, "10.0.0.2")]
    for client in crowd:
        client.say("GET /stream HTTP/1.1\nHost: h")
    flood = [Client(site) for _ in range(5)]
    assert [client.transport.disconnected for client in flood] == [True] * 5, "half of the places for one address"
    others = [Client(site, f"10.0.1.{n}") for n in range(2)]

    assert len(site.limits) == 4 and not any(client.transport.disconnected for client in others)
    assert [client.transport.disconnected for client in crowd] == [True, False, False]
