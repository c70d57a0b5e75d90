"""Twisted's reactor as the broker sees it: an argument with a type, never a global.

Twisted describes its reactor with zope interfaces, which a type checker cannot read; this says the same in Python.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from kafka2011.errors import RequestTimedOut

T = TypeVar("T")


class Host(Protocol):
    """An address a port listens on."""

    host: str
    port: int


class ListeningPort(Protocol):
    """A socket that accepts connections."""

    def getHost(self) -> Host: ...
    def stopListening(self) -> Deferred[None] | None: ...


class DelayedCall(Protocol):
    """A timer."""

    def cancel(self) -> None: ...
    def active(self) -> bool: ...


class Reactor(Protocol):
    """What the broker and its plug-ins ask of the reactor."""

    def seconds(self) -> float: ...
    def callLater(self, delay: float, call: Callable[..., object], *args: object) -> DelayedCall: ...
    def callFromThread(self, call: Callable[..., object], *args: object) -> None: ...
    def callWhenRunning(self, call: Callable[..., object], *args: object) -> object: ...
    def listenTCP(self, port: int, factory: object, backlog: int = 50, interface: str = "") -> ListeningPort: ...
    def listenSSL(
        self, port: int, factory: object, context: object, backlog: int = 50, interface: str = ""
    ) -> ListeningPort: ...
    def addSystemEventTrigger(self, phase: str, event: str, call: Callable[..., object]) -> object: ...
    def run(self) -> None: ...
    def stop(self) -> None: ...


class DaemonThreads(ThreadPool):
    """Threads that never keep the process alive: a disk that hangs must not hang a stop."""

    threadFactory = partial(threading.Thread, daemon=True)  # type: ignore[assignment]  # called like the class


def in_thread(reactor: Reactor, pool: ThreadPool, work: Callable[[], T]) -> Deferred[T]:
    """Run ``work`` in a thread of ``pool``; fires on the reactor with what it returned."""
    return deferToThreadPool(cast(Any, reactor), pool, work)


def within(reactor: Reactor, seconds: float, wait: Deferred[Any]) -> Deferred[bool]:
    """Fire with True when ``wait`` does, with False if ``seconds`` pass before; its failure is passed on.

    ``wait`` itself is left alone: cancelling what a thread still works on would only hide that it does.
    """
    outcome: Deferred[bool] = Deferred()
    timer = reactor.callLater(seconds, outcome.callback, False)

    def ended(result: object) -> None:
        if timer.active():
            timer.cancel()
            outcome.errback(result) if isinstance(result, Failure) else outcome.callback(True)

    wait.addBoth(ended)
    return outcome


def in_time(reactor: Reactor, seconds: float, wait: Deferred[T], what: str) -> Deferred[T]:
    """Cancel ``wait`` unless it fires within ``seconds``; it then fails with RequestTimedOut, which says ``what``."""

    def late(_: object, after: float) -> Failure:
        return Failure(RequestTimedOut(f"{what} within {after:g} s"))

    return wait.addTimeout(seconds, cast(Any, reactor), onTimeoutCancel=late)


def all_of(waits: Sequence[Deferred[None]]) -> Deferred[None]:
    """Fire when all of ``waits`` have; the first failure is passed on as it is. Cancelling it cancels them."""

    def first_of_them(failure: Failure) -> Failure:
        first = failure.value
        return first.subFailure if isinstance(first, FirstError) else failure

    return gatherResults(waits, consumeErrors=True).addCallbacks(lambda _: None, first_of_them)


def every(reactor: Reactor, seconds: float, work: Callable[[], object], *, now: bool = False) -> LoopingCall:
    """Call ``work`` again and again on the reactor's clock; stop it with ``.stop()``."""
    loop = LoopingCall(work)
    loop.clock = cast(Any, reactor)
    loop.start(seconds, now=now)
    return loop
