"""How long one server of an ensemble may keep a client waiting at the door, and, with TLS, who it must be.

A frozen server accepts a connection and says nothing. kazoo gives each server a part of the session timeout, T/n of n
servers; but when the old connection is found dead, two thirds of the session may be gone, and one mute server is enough
to lose the rest. Here each gets T/3n, so that all of them can be asked in the third that is left. Every third attempt
is patient, T/n as in kazoo: a server that is slow, and not frozen, is let in too.

Paper: §3.2 (consumers and brokers outlive a change of ZooKeeper's leader).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

_PATIENT = 3
"""Every so many attempts one is patient."""


class PromptHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no annotations
    """kazoo's threads and sockets, with a limit on what a server may take until it has let us in. Thread: kazoo's.

    ``connected()`` ends the limit: from there on kazoo's own read timeouts hold.
    """

    def __init__(
        self,
        timeout_s: float,
        n_servers: int,
        tls: ssl.SSLContext | None = None,
        *,
        ended: Callable[[BaseException | None], None] = lambda error: None,
    ) -> None:
        """``ended`` is called as the last act of a thread of kazoo that died, with the error, or whose loop is over."""
        super().__init__()
        self._ended = ended
        self.refused: str | None = None
        """Why the last TLS handshake came to nothing: kazoo tells nobody."""
        self._tls = tls
        self._share_s = timeout_s / max(1, n_servers)
        self._attempts = 0
        self._limit_s: float | None = None

    def connected(self) -> None:
        """A server has let us in."""
        self._attempts, self._limit_s, self.refused = 0, None, None

    def spawn(self, func: Callable[..., object], *arguments: Any, **options: Any) -> Any:
        """Start a thread whose end does not go unnoticed."""

        def run() -> None:
            error: BaseException | None = None
            try:
                func(*arguments, **options)
            except BaseException as failure:  # also SystemExit: a thread that is gone is gone
                error = failure
            # The other threads end without an error when the interpreter does; the one with the connection does not.
            if error is not None or getattr(func, "__name__", "") == "zk_loop":
                self._ended(error)

        return super().spawn(run)

    def create_connection(self, address: Any, hostname: str | None = None, **_: Any) -> Any:
        """Begin an attempt at the next server; kazoo's own TLS options are not used."""
        self._attempts += 1
        patient = self._attempts % _PATIENT == 0
        self._limit_s = self._share_s if patient else self._share_s / 3
        line = super().create_connection(address, timeout=self._limit_s)
        if self._tls is None:
            return line
        try:
            return self._tls.wrap_socket(line, server_hostname=hostname or address[0])
        except OSError as error:
            self.refused = getattr(error, "verify_message", None) or str(error)
            line.close()
            raise

    def select(self, reads: Any, writes: Any, errors: Any, timeout: float | None = None) -> Any:
        """Wait for a socket, during an attempt no longer than the attempt may take."""
        if self._limit_s is not None and timeout is not None:
            timeout = min(timeout, self._limit_s)
        return super().select(reads, writes, errors, timeout)
