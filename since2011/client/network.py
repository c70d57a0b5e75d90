"""The connections of one client to all its brokers, and one place to wait for any of them.

Requests go out by broker number and carry a tag; what comes back is an ``Answered`` or a ``Lost`` with the same tag,
each request exactly once. A connection is opened by a thread of its own, because looking up a name, TLS and a login may
take seconds; nobody else waits meanwhile. A broker that cannot be reached is tried again after a back-off.
"""

from __future__ import annotations

import math
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from kafka2011.clock import Clock
from kafka2011.errors import ConnectionFailed, Kafka2011Error
from since2011.client.backoff import Backoff
from since2011.client.connection import ModernConnection
from since2011.client.pipeline import Pipeline
from since2011.wire.codec import ApiKey, Struct

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Answered:
    """A broker answered."""

    node: int
    tag: object
    body: Struct


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer will come: whether the request had its effect is unknown."""

    node: int
    tag: object
    error: Kafka2011Error


Event = Answered | Lost
Opener = Callable[[str, int], ModernConnection]


@dataclass(slots=True)
class _Link:
    address: Address
    pipeline: Pipeline | None = None
    opening: bool = False
    failures: int = 0
    not_before: float = 0.0
    writing: bool = False
    """Registered for writing, because the kernel takes no more at the moment."""


@dataclass(slots=True)
class _Opened:
    node: int
    address: Address
    pipeline: Pipeline | None
    error: Kafka2011Error | None = field(default=None)


class Network:
    """All connections of a client. Thread: one, except ``wake``."""

    def __init__(
        self,
        *,
        client_id: str,
        clock: Clock,
        backoff: Backoff,
        request_timeout_s: float,
        opener: Opener | None = None,
    ) -> None:
        self._client_id, self._clock, self._backoff = client_id, clock, backoff
        self._timeout_s = request_timeout_s
        self._opener = opener or self._open
        self._links: dict[int, _Link] = {}
        self._opened: deque[_Opened] = deque()
        self._events: list[Event] = []
        self._closed = False
        self.last_failure: Kafka2011Error | None = None
        """Why the last connection could not be opened, or broke; None once one is open."""
        self._selector = selectors.DefaultSelector()
        self._ear, self._bell = socket.socketpair()
        self._ear.setblocking(False)
        self._bell.setblocking(False)
        self._selector.register(self._ear, selectors.EVENT_READ, None)

    # -- asking ---------------------------------------------------------------------------------------------------

    def ready(self, node: int, address: Address) -> bool:
        """Whether a request may be sent to ``node`` now; if there is no connection, one is being opened."""
        link = self._links.get(node)
        if link is None or link.address != address:
            if link is not None:
                self._drop(node, link, ConnectionFailed(f"broker {node} has moved to {address[0]}:{address[1]}"))
            link = self._links[node] = _Link(address)
        if link.pipeline is not None:
            return not link.pipeline.wants_to_write
        if not link.opening and self._clock.monotonic() >= link.not_before and not self._closed:
            link.opening = True
            threading.Thread(target=self._connect, args=(node, address), daemon=True, name="kafka-connect").start()
        return False

    def in_flight(self, node: int) -> int:
        """How many requests to ``node`` wait for their answer."""
        link = self._links.get(node)
        return 0 if link is None or link.pipeline is None else len(link.pipeline.in_flight)

    def open_nodes(self) -> list[int]:
        """The brokers a connection is open to."""
        return [node for node, link in self._links.items() if link.pipeline is not None]

    def send(self, node: int, key: ApiKey, newest: int, body: Struct, tag: object, *, answered: bool = True) -> bool:
        """Send to a node that was ``ready``; whether that went.

        Failing is an event, as everything is that goes wrong later.
        """
        link = self._links[node]
        try:
            if link.pipeline is None:
                raise ConnectionFailed(f"there is no connection to broker {node}")
            link.pipeline.send(key, newest, body, tag, self._clock.monotonic(), answered=answered)
            self._watch_writing(node, link)
        except ConnectionFailed as error:
            known = link.pipeline is not None and any(one.tag is tag for one in link.pipeline.in_flight)
            if not known:
                self._events.append(Lost(node, tag, error))
            if error.retriable:
                self._drop(node, link, error)
            return False
        return True

    def poll(self, wait_s: float) -> list[Event]:
        """What has happened, after at most ``wait_s``."""
        now = self._clock.monotonic()
        limit = min((at for at in self._deadlines()), default=math.inf) - now
        wait = 0.0 if self._events else max(0.0, min(wait_s, limit))
        for key, mask in self._selector.select(None if wait == math.inf else wait):
            if key.data is None:
                self._hear()
            elif (link := self._links.get(key.data)) is not None and link.pipeline is key.fileobj:
                self._serve(key.data, link, mask)
        self._take_opened()
        self._time_out()
        events, self._events = self._events, []
        return events

    def wake(self) -> None:
        """Let ``poll`` return. Thread: any."""
        try:
            self._bell.send(b"!")
        except (BlockingIOError, OSError):
            pass  # it will return anyway: the bell is ringing, or all is closed

    def close(self) -> None:
        """Hang up everywhere."""
        self._closed = True
        for link in self._links.values():
            if link.pipeline is not None:
                link.pipeline.close()
        self._selector.close()
        self._bell.close()
        self._ear.close()

    # -- connections ----------------------------------------------------------------------------------------------

    def _open(self, host: str, port: int) -> ModernConnection:
        return ModernConnection(host, port, client_id=self._client_id, timeout_s=self._timeout_s)

    def _connect(self, node: int, address: Address) -> None:
        """In a thread of its own."""
        try:
            opened = _Opened(node, address, Pipeline(self._opener(*address), self._client_id))
        except Kafka2011Error as error:
            opened = _Opened(node, address, None, error)
        except Exception as error:
            opened = _Opened(node, address, None, ConnectionFailed(f"cannot connect to {address}: {error!r}"))
        self._opened.append(opened)
        self.wake()
        if self._closed and opened.pipeline is not None:
            opened.pipeline.close()

    def _take_opened(self) -> None:
        while self._opened:
            opened = self._opened.popleft()
            link = self._links.get(opened.node)
            if link is None or link.address != opened.address:
                if opened.pipeline is not None:
                    opened.pipeline.close()
                continue
            link.opening = False
            if opened.pipeline is None:
                self.last_failure = opened.error
                self._wait_before_next(link)
                continue
            link.pipeline, link.failures, self.last_failure = opened.pipeline, 0, None
            self._selector.register(opened.pipeline, selectors.EVENT_READ, opened.node)

    def _wait_before_next(self, link: _Link) -> None:
        link.failures += 1
        link.not_before = self._clock.monotonic() + self._backoff.after(link.failures)

    def _drop(self, node: int, link: _Link, error: ConnectionFailed) -> None:
        pipeline, link.pipeline, link.writing = link.pipeline, None, False
        if pipeline is None:
            return
        # Selectors forget a closed socket only if told before its number is used again.
        for key in [key for key in self._selector.get_map().values() if key.fileobj is pipeline]:
            self._selector.unregister(key.fd)
        pipeline.close()
        self.last_failure = error
        self._events += [Lost(node, asked.tag, error) for asked in pipeline.in_flight]
        self._wait_before_next(link)

    def _serve(self, node: int, link: _Link, mask: int) -> None:
        pipeline = link.pipeline
        assert pipeline is not None
        try:
            if mask & selectors.EVENT_WRITE:
                pipeline.write()
                self._watch_writing(node, link)
            if mask & selectors.EVENT_READ:
                self._events += [Answered(node, asked.tag, body) for asked, body in pipeline.read()]
        except ConnectionFailed as error:
            self._drop(node, link, error)

    def _watch_writing(self, node: int, link: _Link) -> None:
        pipeline = link.pipeline
        assert pipeline is not None
        if pipeline.wants_to_write != link.writing:
            link.writing = pipeline.wants_to_write
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.writing else 0)
            self._selector.modify(pipeline, events, node)

    # -- time -----------------------------------------------------------------------------------------------------

    def _deadlines(self) -> list[float]:
        now = self._clock.monotonic()
        found = []
        for link in self._links.values():
            if link.pipeline is not None:
                if link.pipeline.in_flight:
                    found.append(link.pipeline.in_flight[0].since + self._timeout_s)
            elif not link.opening and link.not_before > now:
                found.append(link.not_before)
        return found

    def _time_out(self) -> None:
        now = self._clock.monotonic()
        for node, link in self._links.items():
            waiting = link.pipeline.in_flight if link.pipeline is not None else None
            if waiting and now - waiting[0].since >= self._timeout_s:
                what = waiting[0].key.name
                self._drop(node, link, ConnectionFailed(f"broker {node} did not answer {what} in {self._timeout_s} s"))

    def _hear(self) -> None:
        try:
            while self._ear.recv(4096):
                pass
        except BlockingIOError:
            pass
