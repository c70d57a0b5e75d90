"""Work that takes more than a few milliseconds leaves the network's thread.

Opening a compressed set of a megabyte takes longer than a hundred small requests; done where requests are read, it
would hold up everybody else. So a set is first checked with a small budget; what does not fit it is checked again
here, with all that a request may spend, while its connection waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from kafka2011.broker.reactor import DaemonThreads, Reactor, in_thread
from kafka2011.errors import SetTooLarge
from kafka2011.wire import Budget, SetSummary, validate_set

T = TypeVar("T")

QUICK_BYTES = 256 << 10
"""A set up to this size is checked at once, unless it inflates to much more."""
QUICK_INFLATED = 256 << 10
QUICK_MESSAGES = 100_000
"""What is inflated, and how many messages are checked, in one turn of a connection."""


class LongWork:
    """A thread that does one piece of work after the other. Thread: reactor.

    One at a time: what a single request may take of memory is then what all of them take together.
    """

    def __init__(self, reactor: Reactor, name: str) -> None:
        self._reactor = reactor
        self._pool = DaemonThreads(0, 1, name=name)
        self._ended = False

    def start(self) -> None:
        """Begin; what was asked for before is done first."""
        self._pool.start()

    def stop(self) -> None:
        """End when the work at hand is done; what has not begun is given up."""
        self._ended = True
        self._pool.stop()

    def do(self, work: Callable[[], T]) -> Deferred[T]:
        """Fire with what ``work`` returns. Cancelled before its turn, it is not done at all."""
        given_up: list[Failure] = []

        def unless_given_up() -> T:
            if given_up or self._ended:
                raise CancelledError("nobody waits for it any more")
            return work()

        def note(failure: Failure) -> Failure:
            given_up.append(failure)
            return failure

        return in_thread(self._reactor, self._pool, unless_given_up).addErrback(note)


def quick_budget() -> Budget:
    """What may be spent without leaving the network's thread."""
    return Budget(QUICK_INFLATED, QUICK_MESSAGES)


def check_quickly(data: bytes, budget: Budget, most: int = QUICK_BYTES) -> SetSummary | None:
    """Validate a set if that is quick; None if it takes long. Raises what ``validate_set`` raises."""
    if len(data) > most:
        return None
    try:
        return validate_set(data, budget=budget)
    except SetTooLarge:
        return None
