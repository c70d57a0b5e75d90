"""An HTTP port to look at a broker: what the broker is doing, for the page, for Prometheus, for curl.

    /state     everything as JSON          /metrics   Prometheus text
    /events    server-sent events; ``Last-Event-ID`` (or ``?since=``) replays what was missed; with ``?once=1`` a JSON
               list of what was missed, without routine (flushes), and the end
    /healthz   200 while the broker serves, 503 when the disk has failed a log; names what a person should look at
    /accept-missing    POST, from this machine, with the header X-Kafka2011: the missing files are known

Else GET only; the Host header must name loopback or this broker, so that no web page elsewhere can read it through a
browser.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from twisted.python.failure import Failure
from twisted.web.server import NOT_DONE_YET, Request

from kafka2011.broker.http_door import (
    CountingFactory,
    GuardedResource,
    guarded_site,
    header,
    host_name,
    query,
    whole_number,
)
from kafka2011.broker.metrics import CONTENT_TYPE, exposition
from kafka2011.broker.reactor import DaemonThreads, Reactor, in_thread
from kafka2011.broker.state import health
from kafka2011.events import Journal
from kafka2011.log.checkpoint import Missing

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

T = TypeVar("T")

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_MOST_BODY = 1024
"""Bytes: nothing that is asked here has a body."""
_MOST_UNSENT = 1 << 20
"""A reader of /events that falls this far behind is closed; it comes back and replays."""


def admin_site(broker: Broker, reactor: Reactor) -> CountingFactory:
    """The site of a broker."""
    connections = broker.config.integer("admin.max.connections")
    return guarded_site(_Admin(broker, reactor), reactor.seconds, most_body=_MOST_BODY, connections=connections)


class _Admin(GuardedResource):
    def __init__(self, broker: Broker, reactor: Reactor) -> None:
        super().__init__(broker.journal.emit)
        self._broker, self._reactor = broker, reactor
        self._names = _LOOPBACK | {broker.address.host.lower(), broker.config.get("admin.address", str).lower()}
        # One of its own: the threads of the disk may all hang just when somebody must see the numbers.
        self._thread = DaemonThreads(0, 1, name="metrics")
        self._thread.start()
        self._events = EventStream(broker.journal, reactor)

    def answer(self, request: Request) -> bytes | int:
        """Method, then host, then what is asked."""
        request.setHeader(b"cache-control", b"no-store")
        request.setHeader(b"x-content-type-options", b"nosniff")
        path = request.path
        if request.method not in ((b"POST",) if path == b"/accept-missing" else (b"GET", b"HEAD")):
            return _text(request, 405, "only POST" if path == b"/accept-missing" else "only GET")
        if host_name(header(request, "host")) not in self._names:
            return _text(request, 403, "ask for 127.0.0.1, localhost or the broker's own name")
        if path == b"/accept-missing":
            return self._accept_missing(request)
        if path == b"/state":
            return _json(request, self._broker.state())
        if path == b"/metrics":
            return self._metrics(request)
        if path == b"/healthz":
            return self._health(request)
        if path == b"/events" and b"once" in request.args:
            missed = self._broker.journal.since(_since(request))
            return _json(request, [entry.as_dict() for entry in missed if entry.event.level > logging.DEBUG])
        if path == b"/events" and request.method == b"GET":
            return self._events.follow(request)
        return _text(request, 404, "there are /state, /metrics, /events and /healthz")

    def _health(self, request: Request) -> bytes:
        if not self._broker.running:
            return _text(request, 503, "stopping")
        well, lines = health(self._broker.store)
        # Told, and no reason to start the broker again: it serves meanwhile, and they mend themselves or nothing does.
        troubles = ((name, plugin.trouble()) for name, plugin in self._broker.plugins.items())
        lines = [*lines, *(f"{name}: {trouble}" for name, trouble in troubles if trouble is not None)]
        return _text(request, 200 if well else 503, "\n".join([*(["ok"] if well else []), *lines]))

    def _accept_missing(self, request: Request) -> bytes | int:
        """Only for somebody on this machine; a page in a browser cannot send the header to another site unasked."""
        if request.getHeader("x-kafka2011") is None or request.getClientAddress().host not in _LOOPBACK:
            return _text(request, 403, "use `kafka2011 log accept --admin` on the broker's own machine")
        return self._answer(request, self._broker.store.accept_missing, _accepted)

    def _metrics(self, request: Request) -> int:
        """In a thread: with ten thousand topics the text takes long enough to be felt by everybody else."""
        request.setHeader(b"content-type", CONTENT_TYPE.encode())
        return self._answer(request, partial(exposition, self._broker), bytes)

    def _answer(self, request: Request, work: Callable[[], T], as_bytes: Callable[[T], bytes]) -> int:
        """Do ``work`` in a thread and send what it returns."""
        gone: list[bool] = []
        request.notifyFinish().addErrback(lambda _: gone.append(True))

        def answer(found: T) -> None:
            if not gone:
                request.write(as_bytes(found))
                request.finish()

        def failed(failure: Failure) -> None:
            if not gone:
                request.write(_text(request, 500, failure.getErrorMessage()))
                request.finish()

        in_thread(self._reactor, self._thread, work).addCallbacks(answer, failed)
        return NOT_DONE_YET


def _accepted(missing: list[Missing]) -> bytes:
    return json.dumps([str(one) for one in missing]).encode()


class EventStream:
    """Send a journal as server-sent events to any number of readers. Thread: reactor."""

    def __init__(self, journal: Journal, reactor: Reactor) -> None:
        self._journal, self._reactor = journal, reactor

    def follow(self, request: Request) -> int:
        """Replay what the reader missed, then send every event as it happens."""
        reader = _Reader(request, self._journal, _since(request))
        request.setHeader(b"content-type", b"text/event-stream")
        request.write(b"retry: 1000\n\n")
        end = self._journal.subscribe(lambda _: self._reactor.callFromThread(reader.catch_up))
        request.notifyFinish().addBoth(lambda _: end())
        reader.catch_up()
        return NOT_DONE_YET


class _Reader:
    def __init__(self, request: Request, journal: Journal, last: int) -> None:
        self._request, self._journal, self._last = request, journal, last

    def catch_up(self) -> None:
        """Send what the journal has and this reader has not; by number, as threads tell of events in any order."""
        transport = self._request.transport
        if transport is None:
            return
        for entry in self._journal.since(self._last):
            self._last = entry.number
            text = f"id: {entry.number}\nevent: {entry.event.name}\ndata: {entry.as_json()}\n\n"
            self._request.write(text.encode())
        if len(getattr(transport, "dataBuffer", b"")) > _MOST_UNSENT:
            transport.abortConnection()


def _since(request: Request) -> int:
    """The last event that the reader has."""
    last = header(request, "last-event-id")
    return whole_number(last, "Last-Event-ID") if last else whole_number(query(request).get("since", "0"), "since")


def _json(request: Request, value: object) -> bytes:
    request.setHeader(b"content-type", b"application/json")
    return json.dumps(value).encode()


def _text(request: Request, code: int, text: str) -> bytes:
    request.setResponseCode(code)
    request.setHeader(b"content-type", b"text/plain; charset=utf-8")
    return text.encode() + b"\n"
