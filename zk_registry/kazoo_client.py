"""One kazoo client, from its start to its end, and a word when it ends without being asked to.

kazoo does its work in one thread. If something unforeseen happens there, an answer with a number nobody waits for, or
a credential that is refused, the thread ends, and kazoo tells nobody but its log: calls fail, watches stay silent, no
session ever begins again. Here whoever made the client is called.

Paper: §3.2.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from zk_registry.access import access_lists
from zk_registry.ensemble import servers_of
from zk_registry.handshake import PromptHandler
from zk_registry.kazoo_calls import KazooCalls
from zk_registry.states import SessionState

_STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.LOST,
}
# kazoo logs each failed attempt; what matters of that is told as an event.
_LOGGER = logging.getLogger("kafka2011.kazoo")
_LOGGER.setLevel(logging.CRITICAL + 1)
_MAX_PAUSE_S = 0.25
"""Between two rounds of attempts to connect: what is added, at worst, to the time ZooKeeper was away."""


class Client:
    """A client that is started once and stopped once. Thread: any; ``changed`` and ``ended`` are called in kazoo's."""

    def __init__(
        self,
        connect: str,
        timeout_s: float,
        *,
        credential: str | None,
        tls: ssl.SSLContext | None,
        later: Callable[[Callable[[], None]], None],
        changed: Callable[[Client, SessionState], None],
        ended: Callable[[Client, str], None],
    ) -> None:
        """``later`` takes what must not run in kazoo's threads; ``ended`` is told why, unless ``stop`` was called."""
        self._changed, self._ended = changed, ended
        self._stopping = False
        self._handler = PromptHandler(timeout_s, len(servers_of(connect)), tls, ended=self._has_ended)
        self._kazoo = KazooClient(
            connect,
            timeout=timeout_s,
            handler=self._handler,
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=_MAX_PAUSE_S, max_jitter=0.2),
            command_retry=KazooRetry(max_tries=1, max_delay=1.0),
            auth_data=[("digest", credential)] if credential else None,
            logger=_LOGGER,
        )
        self._kazoo.add_listener(self._listen)
        self.calls = KazooCalls(self._kazoo, later, access_lists(credential))

    @property
    def identity(self) -> tuple[int, bytes]:
        """The id and the password of the session; 0 and nothing while there is none."""
        return self._kazoo.client_id or (0, b"")

    @property
    def refused(self) -> str | None:
        """Why the last TLS handshake came to nothing."""
        return self._handler.refused

    def start(self) -> None:
        """Begin to connect, and return."""
        self._kazoo.start_async()

    def stop(self) -> None:
        """End the session; takes as long as kazoo does."""
        self._stopping = True
        self._kazoo.stop()
        self._kazoo.close()

    def _listen(self, kazoo_state: str) -> None:
        state = _STATES[kazoo_state]
        if state is SessionState.CONNECTED:
            self._handler.connected()
        self._changed(self, state)

    def _has_ended(self, error: BaseException | None) -> None:
        if not self._stopping:
            told = "it ended by itself; is the credential right?" if error is None else _words(error)
            self._ended(self, told)


def _words(error: BaseException) -> str:
    """An exception in a line; kazoo gives some a pattern and its values."""
    pattern, *values = error.args or (repr(error),)
    try:
        told = str(pattern) % tuple(values) if values else str(pattern)
    except TypeError:
        told = str(error)
    return f"{type(error).__name__}: {told}"
