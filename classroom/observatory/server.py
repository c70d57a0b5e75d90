"""The page's server: static files, one stream of views, a few questions, and (if allowed) faults.

Safe when left alone: loopback, a Host check against DNS rebinding, no state change by GET, faults only by POST with
the page's own token and origin, a content policy that allows nothing from elsewhere.
"""

from __future__ import annotations

import json
import mimetypes
import secrets
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from twisted.internet.interfaces import IReactorTCP
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure
from twisted.web.server import NOT_DONE_YET, Request

from classroom.claims.board import Board
from classroom.observatory import paper_links
from classroom.observatory.faults import Faults
from classroom.observatory.frames import Film, Frame, save
from classroom.observatory.metrics import exposition
from classroom.observatory.paper_page import paper_page
from classroom.observatory.source_pages import page, source_page
from classroom.observatory.view import project
from classroom.observatory.words import tooltips
from kafka2011.broker.http_door import GuardedResource, header, host_name, origin_name, query, whole_number
from kafka2011.events import Event

_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
_HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",
    b"cache-control": b"no-store",
}

_PANES_OF_FAULTS = ("faults", "ownership", "segments", "load")
_MOST_UNSENT = 4 << 20
MOST_BODY = 10_000
"""Bytes of a wish: a fault, a message, a plan."""
MOST_CONNECTIONS = 256
"""One stream for each page that is open, and a few questions."""

FAULT = "/api/fault"
PUBLISH = "/api/publish"
PLAN = "/api/plan"
MOVE = "/api/move"
CLAIM = "/api/claim"
_FLAGS = dict.fromkeys((FAULT, CLAIM), "--allow-faults") | dict.fromkeys((PUBLISH, PLAN, MOVE), "--allow-writes")

Reader = Callable[[dict[str, str]], dict[str, Any]]
Action = Callable[[dict[str, Any]], dict[str, Any]]
"""Something the page may ask for by POST; called in a thread. A wish that lacks something raises KeyError."""


class Observatory(GuardedResource):
    """All of the page. Thread: the reactor."""

    def __init__(
        self,
        reactor: IReactorTCP,
        film: Film,
        *,
        hosts: frozenset[str],
        replay: bool = False,
        read_messages: Reader | None = None,
        faults: Faults | None = None,
        actions: Mapping[str, Action] | None = None,
        claims: Board | None = None,
        tell: Callable[[Event], None] = lambda event: None,
    ) -> None:
        super().__init__(tell)
        self._reactor, self._film, self._hosts, self._replay = reactor, film, hosts, replay
        self._read_messages, self._faults, self._claims = read_messages, faults, claims
        self._actions = dict(actions or {}) | ({FAULT: faults.wish} if faults else {})
        self._token = secrets.token_urlsafe(16)
        self._listeners: dict[Request, dict[str, str]] = {}
        self.shown_groups: frozenset[str] = frozenset()
        """The groups somebody looks at: they are always read whole. Replaced, never changed, so any thread may read."""
        self._get: dict[str, Callable[[Request, dict[str, str]], Any]] = {
            "/": lambda request, _: self._static(request, "index.html"),
            "/api/stream": self._stream,
            "/api/view": self._view_at,
            "/api/recording": self._recording,
            "/api/messages": self._messages,
            CLAIM: self._claim,
            "/api/words": lambda request, _: self._json(request, tooltips(header(request, "accept-language"))),
            "/metrics": self._metrics,
            "/paper": self._paper,
            "/healthz": lambda request, _: self._text(request, "ok\n"),
        }

    def new_frame(self, frame: Frame) -> None:
        """Keep the frame and send each open page its view of it."""
        if self._faults is not None:
            frame["struck"] = self._faults.newly_struck()
        self._film.append(frame)
        if self._faults is not None:
            self._faults.observe(self._film)
        views: dict[str, bytes] = {}
        for request, choice in list(self._listeners.items()):
            transport = request.transport
            if transport is not None and len(getattr(transport, "dataBuffer", b"")) > _MOST_UNSENT:
                transport.abortConnection()  # a page that does not read; it comes back by itself when it does
                continue
            key = json.dumps(choice)
            if key not in views:
                views[key] = _event(self._view(frame, choice))
            request.write(views[key])

    def answer(self, request: Request) -> bytes | int:
        """Host, then method, then token where something is done, then what is asked."""
        for name, value in _HEADERS.items():
            request.setHeader(name, value)
        host = header(request, "host")
        if host_name(host) not in self._hosts:
            return self.refuse(request, 421, f"this page is not served as {host!r}; open it as http://127.0.0.1")
        path = request.path.decode("utf-8", "replace")
        if request.method == b"POST" and path in _FLAGS:
            return self._do(request, path)
        if request.method not in (b"GET", b"HEAD"):
            return self.refuse(request, 405, "only GET is allowed here")
        if path.startswith("/static/"):
            return self._static(request, path.removeprefix("/static/"))
        if path.startswith("/source/"):
            return self._source(request, path.removeprefix("/source/"), query(request))
        handler = self._get.get(path)
        if handler is None:
            return self.refuse(request, 404, "no such page")
        answer: bytes | int = handler(request, query(request))
        return answer

    # -- answers ------------------------------------------------------------------------------------------------

    def _view(self, frame: Frame, choice: dict[str, str]) -> dict[str, Any]:
        view = project(
            self._film, frame, topic=choice.get("topic", ""), group=choice.get("group", ""), pane=choice.get("pane", "")
        )
        view["links"] = paper_links.resolve()
        view["replay"] = self._replay
        view["may"] = sorted(self._actions)
        view["token"] = self._token if self._actions else None
        view["faults"] = self._faults.as_view() if self._faults and choice.get("pane") in _PANES_OF_FAULTS else None
        view["claims"] = self._claims.as_view() if self._claims and choice.get("pane") == "claims" else None
        return view

    def _stream(self, request: Request, query: dict[str, str]) -> int:
        request.setHeader(b"content-type", b"text/event-stream")
        request.write(b"retry: 1000\n\n")
        self._listeners[request] = query
        self._note_groups()
        request.notifyFinish().addBoth(lambda _: self._forget(request))
        frame = self._film.at()
        if frame is not None:
            request.write(_event(self._view(frame, query)))
        return NOT_DONE_YET

    def _forget(self, request: Request) -> None:
        self._listeners.pop(request, None)
        self._note_groups()

    def _note_groups(self) -> None:
        self.shown_groups = frozenset(choice["group"] for choice in self._listeners.values() if choice.get("group"))

    def _view_at(self, request: Request, query: dict[str, str]) -> bytes:
        frame = self._film.at(whole_number(query["at"], "at") if query.get("at") else None)
        if frame is None:
            return self.refuse(request, 404, "nothing has been seen yet")
        return self._json(request, self._view(frame, query))

    def _recording(self, request: Request, query: dict[str, str]) -> bytes:
        request.setHeader(b"content-type", b"application/jsonl")
        request.setHeader(b"content-disposition", b'attachment; filename="run.k2011.jsonl"')
        return b"".join(save(self._film))

    def _messages(self, request: Request, query: dict[str, str]) -> bytes | int:
        if self._read_messages is None:
            return self.refuse(request, 404, "a recording holds no message bytes")
        return self._later(request, self._read_messages, query)

    def _claim(self, request: Request, query: dict[str, str]) -> bytes | int:
        if self._claims is None:
            return self.refuse(request, 404, "a recording holds no claims")
        return self._later(request, self._claims.result, query)

    def _do(self, request: Request, path: str) -> bytes | int:
        """Something that changes the cluster: only as this page, of this start of the observatory, asks for it."""
        act = self._actions.get(path)
        if act is None:
            return self.refuse(request, 403, f"this is off; start the observatory with {_FLAGS[path]}")
        kind = getattr(request, "content_kind", b"")
        if origin_name(header(request, "origin")) not in self._hosts or kind != b"application/json":
            return self.refuse(request, 403, "this can only be asked for by the page itself")
        if not secrets.compare_digest(header(request, "x-token").encode(), self._token.encode()):
            return self.refuse(request, 403, "this page is from an earlier start of the observatory; load it again")
        assert request.content is not None  # Twisted has read the whole request before it renders
        try:
            wish = json.loads(request.content.read())
        except (ValueError, RecursionError):
            wish = None
        if not isinstance(wish, dict):
            return self.refuse(request, 400, "a wish is a JSON object")
        return self._later(request, act, wish)

    def _later(self, request: Request, ask: Callable[[Any], dict[str, Any]], question: Any) -> int:
        """Answer with what ``ask`` returns in a thread; with 400 and its words if it refuses."""

        def answer(found: dict[str, Any]) -> None:
            request.write(self._json(request, found))
            request.finish()

        def refuse(failure: Failure) -> None:
            missing = failure.check(KeyError)
            why = f"the question lacks {failure.getErrorMessage()}" if missing else failure.getErrorMessage()
            request.write(self.refuse(request, 400, why))
            request.finish()

        asking = deferToThread(ask, question)
        asking.addCallbacks(answer, refuse)
        asking.addErrback(lambda failure: None)  # whoever asked went away meanwhile
        return NOT_DONE_YET

    def _metrics(self, request: Request, query: dict[str, str]) -> bytes:
        frame = self._film.at()
        return self._text(request, exposition(frame) if frame else "", "text/plain; version=0.0.4; charset=utf-8")

    def _static(self, request: Request, name: str) -> bytes:
        # Names are looked up in the list of what is there, so no path can lead out of the directory.
        known = _static_files()
        if name not in known:
            return self.refuse(request, 404, "no such file")
        request.setHeader(b"content-type", (mimetypes.guess_type(name)[0] or "application/octet-stream").encode())
        return known[name]

    def _source(self, request: Request, module: str, query: dict[str, str]) -> bytes:
        found = source_page(module, query.get("back", ""))
        if found is None:
            request.setResponseCode(404)
            found = page("No such module", "<p>This project has no module of that name.</p>")
        return self._text(request, found, "text/html; charset=utf-8")

    def _paper(self, request: Request, query: dict[str, str]) -> bytes:
        return self._text(request, paper_page(query.get("back", "")), "text/html; charset=utf-8")

    def _json(self, request: Request, value: Any, code: int = 200) -> bytes:
        request.setResponseCode(code)
        return self._text(request, json.dumps(value), "application/json")

    def _text(self, request: Request, text: str, kind: str = "text/plain; charset=utf-8") -> bytes:
        request.setHeader(b"content-type", kind.encode())
        return text.encode()

    def refuse(self, request: Request, code: int, why: str) -> bytes:
        """An error, as the page reads them."""
        return self._json(request, {"error": why}, code)


def _event(view: dict[str, Any]) -> bytes:
    return b"event: view\ndata: " + json.dumps(view, separators=(",", ":")).encode() + b"\n\n"


def _static_files() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    root = files("classroom.observatory") / "static"
    for entry in root.iterdir():
        if entry.is_dir():
            found |= {f"{entry.name}/{inner.name}": inner.read_bytes() for inner in entry.iterdir()}
        else:
            found[entry.name] = entry.read_bytes()
    return found
