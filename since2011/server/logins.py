"""Logins on the modern port: steps in a thread, refusals slow, told of and final.

A step may hash a password, so it runs in a thread; one at a time for each address, so that a flood of guesses from one
address does not make the logins of others wait, and each address has a bounded line. A refusal is answered after a
pause, in every version of the protocol, and is the last thing a connection hears: ``connection`` reads nothing behind
a step that is under way.

docs/reliability.md.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.task import deferLater
from twisted.python.threadpool import ThreadPool

from kafka2011.broker.rate_limit import RateLimit
from kafka2011.broker.reactor import DaemonThreads, Reactor, in_thread
from since2011.server.events import SaslRefused
from since2011.server.handlers.call import Caller
from since2011.server.sasl import Login, LoginRefused

REFUSAL_PAUSE_S = 0.5
"""A wrong password costs this long: guessing is slow."""
MOST_WAITING = 64
"""Steps of one address that may wait for their turn; a turn takes milliseconds."""


class Logins:
    """Takes the messages of all logins of one broker. Thread: reactor; the hashing is done in its own."""

    def __init__(self, reactor: Reactor, rate_limit: RateLimit, pool: ThreadPool | None = None) -> None:
        self._reactor, self._rate_limit = reactor, rate_limit
        self._pool = DaemonThreads(0, 1, name="logins") if pool is None else pool
        self._lines: dict[str, DeferredLock] = {}
        self._pool.start()

    def stop(self) -> None:
        """End the thread."""
        self._pool.stop()

    async def step(self, caller: Caller, login: Login, message: bytes) -> bytes:
        """The answer to one message. Raises LoginRefused, after the pause, when the connection must end."""
        try:
            return await self._in_line(caller.address, login, message)
        except LoginRefused as error:
            await self.refused(caller, login, error)
            raise

    async def refused(self, caller: Caller, login: Login, reason: LoginRefused) -> None:
        """Tell of a refusal, let it cost its time, and let nothing come after it."""
        mechanism, user = login.mechanism or "none", _shown(login.user)
        self._rate_limit.emit(
            "sasl_refused",
            SaslRefused(
                peer=caller.address,
                principal=str(caller.principal),
                mechanism=mechanism,
                user=user,
                reason=str(reason),
            ),
        )
        await deferLater(cast(Any, self._reactor), REFUSAL_PAUSE_S)
        caller.close_after_answers()

    async def _in_line(self, address: str, login: Login, message: bytes) -> bytes:
        line = self._lines.setdefault(address, DeferredLock())
        if len(line.waiting) >= MOST_WAITING:
            raise LoginRefused("too many logins at once from one address; try again")
        await line.acquire()
        answer: Deferred[bytes] = Deferred()
        # A client that hangs up is not waited for, but its place in the line is free only when the thread is.
        working = in_thread(self._reactor, self._pool, partial(login.step, message))
        working.addBoth(self._next, address, line).chainDeferred(answer)
        return await answer

    def _next(self, result: Any, address: str, line: DeferredLock) -> Any:
        line.release()
        if not line.locked:
            self._lines.pop(address, None)
        return result


def _shown(user: str | None) -> str:
    """A name a stranger gave, short enough to be printed."""
    return "" if user is None else user[:64]
