"""Further kinds of requests on the 2011 port, and the gate before it (design D23)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kafka2011.broker.requests import Requests
from kafka2011.errors import InvalidRequest
from kafka2011.wire import FetchRequest, parse_request


@dataclass
class _Asked:
    body: bytes


def test_a_further_kind_is_known_to_its_own_port_only() -> None:
    """A plug-in adds requests; the wire itself still knows 0.7's five and the acknowledged produce (D23)."""
    requests = Requests()
    requests.add(321, "ask", _Asked, lambda data, pos: _Asked(data[pos:]), lambda _, request, client: [request.body])

    assert parse_request(b"\x01\x41hello", requests.readers) == _Asked(b"hello")
    assert requests.handlers[_Asked][0] == "ask"
    fetch = FetchRequest("t", 0, 0, 1)
    assert parse_request(fetch.encode()[4:], requests.readers) == fetch
    with pytest.raises(InvalidRequest):
        parse_request(b"\x01\x41hello")
    with pytest.raises(InvalidRequest):
        parse_request(b"\x01\x41hello", Requests().readers)
