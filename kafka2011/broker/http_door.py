"""What is checked of an HTTP request before anybody looks at it: for the broker's read-only port and for the page.

    connection   counted against limits of its own; at the limit the quietest gives way
    length       a body larger than the site takes is refused when it is announced, or as it arrives; none is ever
                 taken apart as a form
    question     host, query and numbers are read by the functions below: what cannot be is a BadRequest

A BadRequest is answered 400 with one line. What nobody foresaw is answered 500 with one line, and told as an event.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, cast

from twisted.internet.interfaces import IAddress
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from kafka2011.broker.events import HandlerFailed
from kafka2011.broker.limits import Limits, LimitSettings
from kafka2011.broker.principal import ANONYMOUS
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Event

_LONGEST_NUMBER = 18
"""Digits: no number that is asked for needs more than 64 bits."""


class BadRequest(Kafka2011Error):
    """A request that cannot be read: answered 400, with this line."""


class GuardedResource(Resource, ABC):
    """A resource whose ``answer`` may raise. Thread: reactor."""

    isLeaf = True

    def __init__(self, tell: Callable[[Event], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # twisted.web has no annotations
        self._tell = tell

    @abstractmethod
    def answer(self, request: Request) -> bytes | int:
        """The body, or NOT_DONE_YET."""

    def refuse(self, request: Request, code: int, why: str) -> bytes:
        """An error in one line."""
        request.setResponseCode(code)
        request.setHeader(b"content-type", b"text/plain; charset=utf-8")
        return f"{why}\n".encode("utf-8", "replace")

    def render(self, request: Request) -> bytes | int:
        """Answer, whatever was asked."""
        try:
            return self.answer(request)
        except BadRequest as error:
            return self.refuse(request, 400, str(error))
        except Exception as error:  # the server outlives whatever one request does to it
            peer, trace = request.getClientAddress(), "".join(traceback.format_exception(error, limit=-8))
            who = str(getattr(peer, "host", "unknown"))
            self._tell(HandlerFailed(peer=who, principal=str(ANONYMOUS), error=repr(error), trace=trace))
            return self.refuse(request, 500, "this should not have happened; the server's log says more")


# -- reading a request ------------------------------------------------------------------------------------------------


def host_name(header: str) -> str:
    """The name in a Host header or an origin's authority, without its port; raises BadRequest."""
    host = header.strip().lower()
    if host.startswith("["):
        name, bracket, rest = host[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise BadRequest(f"Host {header[:80]!a} is not a host")
        return name
    return host.partition(":")[0]


def origin_name(header: str) -> str:
    """The host of an Origin header; empty where the browser gives none."""
    scheme, slashes, rest = header.partition("://")
    return host_name(rest.partition("/")[0]) if slashes and scheme in ("http", "https") else ""


def header(request: Request, name: str) -> str:
    """A header as text; empty if it is not there."""
    return (request.getHeader(name.encode()) or b"").decode("latin-1")


def query(request: Request) -> dict[str, str]:
    """What stands behind the question mark; of a name that comes twice, the last."""
    try:
        return {name.decode(): values[-1].decode() for name, values in request.args.items()}
    except UnicodeDecodeError:
        raise BadRequest("the question is not UTF-8") from None


def whole_number(text: str, name: str) -> int:
    """A number that a person, a browser or a program may have written."""
    if not (text.isascii() and text.isdigit()) or len(text) > _LONGEST_NUMBER:
        raise BadRequest(f"{name} must be a whole number of at most {_LONGEST_NUMBER} digits")
    return int(text)


# -- the connection and the body --------------------------------------------------------------------------------------


class BoundedRequest(Request):
    """A request whose body is bounded before it is kept."""

    content_kind = b""
    """The Content-Type, for whoever reads the body."""
    _refused = False

    def gotLength(self, length: int | None) -> None:
        """Refuse a body that is announced larger than the site takes (None: it is not announced)."""
        super().gotLength(0)  # type: ignore[no-untyped-call]
        if length is not None and length > self._most:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:
        """Keep a piece of the body, within the limit."""
        assert self.content is not None
        if not self._refused and self.content.tell() + len(data) > self._most:
            self._refuse()
        if not self._refused:
            super().handleContentChunk(data)  # type: ignore[no-untyped-call]

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Hand the request on, without its Content-Type: Twisted would take a form apart, and none is asked for."""
        if self._refused:
            return
        kinds = self.requestHeaders.getRawHeaders(b"content-type") or [b""]
        self.content_kind = kinds[0].partition(b";")[0].strip().lower()
        self.requestHeaders.removeHeader(b"content-type")
        super().requestReceived(command, path, version)  # type: ignore[no-untyped-call]

    @property
    def _most(self) -> int:
        site = cast(Any, self.channel).site
        return cast(_QuietSite, site).most_body

    def _refuse(self) -> None:
        self._refused = True
        line = b"a body of at most %d bytes is taken here\n" % self._most
        head = b"HTTP/1.1 413 Content Too Large\r\nconnection: close\r\ncontent-type: text/plain\r\n"
        cast(Any, self.channel).transport.write(head + b"content-length: %d\r\n\r\n" % len(line) + line)
        self.channel.loseConnection()


class _QuietSite(Site):
    """Site without an access log: it would go through Twisted's own logging, which nobody reads here."""

    noisy = False
    displayTracebacks = False

    def __init__(self, resource: Resource, most_body: int) -> None:
        super().__init__(resource, requestFactory=BoundedRequest)  # type: ignore[no-untyped-call]
        self.most_body = most_body

    def log(self, request: object) -> None:
        """Write nothing."""


class CountedConnection(ProtocolWrapper):
    """An HTTP connection as the limits see it. Thread: reactor."""

    def __init__(self, factory: CountingFactory, wrapped: Any, address: str) -> None:
        super().__init__(cast(Any, factory), wrapped)
        self._limits = factory.limits
        self._now = factory.now
        self.address = address
        self.principal = ANONYMOUS
        self.opened = self.active = self._now()
        self.frame_begun: float | None = None
        self.heard = False
        self.n_requests = 0

    def connectionMade(self) -> None:
        """Ask the limits for a place."""
        super().connectionMade()  # type: ignore[no-untyped-call]
        self._limits.admit(self)

    def dataReceived(self, data: bytes) -> None:
        """Count it as a word said, and pass it on."""
        self.heard, self.active = True, self._now()
        self.n_requests += 1
        super().dataReceived(data)  # type: ignore[no-untyped-call]

    def write(self, data: bytes) -> None:
        """Send; a stream that flows is not idle."""
        self.active = self._now()
        super().write(data)  # type: ignore[no-untyped-call]

    def writeSequence(self, data: Iterable[bytes]) -> None:
        """The same, in pieces."""
        self.write(b"".join(data))

    def connectionLost(self, reason: Any) -> None:  # type: ignore[override]  # Twisted's default is a Failure
        """Give the place back."""
        self._limits.forget(self)
        super().connectionLost(reason)  # type: ignore[no-untyped-call]

    def drop(self, kind: str, reason: str) -> None:
        """Close it now."""
        self._limits.forget(self)
        self.transport.abortConnection()  # type: ignore[union-attr]

    def hold(self, held: bool) -> None:
        """Nothing to do: bodies are bounded."""


class CountingFactory(WrappingFactory):
    """Wraps the connections of a site so that they are counted."""

    noisy = False
    protocol = CountedConnection

    def __init__(self, site: Site, limits: Limits, now: Callable[[], float]) -> None:
        super().__init__(site)  # type: ignore[no-untyped-call]
        self.limits, self.now = limits, now

    def buildProtocol(self, addr: IAddress) -> CountedConnection:  # type: ignore[override]  # Twisted: Protocol | None
        """One connection, named by its address."""
        wrapped = self.wrappedFactory.buildProtocol(addr)
        return CountedConnection(self, wrapped, str(getattr(addr, "host", "unknown")))


def guarded_site(
    resource: GuardedResource, now: Callable[[], float], *, most_body: int, connections: int
) -> CountingFactory:
    """A site with all of the above: bodies up to ``most_body`` bytes, so many connections, half of one address."""
    limits = Limits(LimitSettings(connections=connections, per_address=max(1, connections // 2)), now)
    return CountingFactory(_QuietSite(resource, most_body), limits, now)
