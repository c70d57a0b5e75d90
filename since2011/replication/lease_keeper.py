"""Keep the lease of the session by which this broker leads: ask ZooKeeper for nothing but an answer, again and again.

The thread asks six times within a session. While answers come the lease holds; when they do not, it ends before the
session can have ended as ZooKeeper counts (``zk_registry.lease``).
"""

from __future__ import annotations

import threading

from zk_registry.lease import Lease, LeasedSession
from zk_registry.operations import RegistryError
from zk_registry.states import Session

_ASKED_WITHIN_A_SESSION = 6


class LeaseKeeper:
    """One thread, and what it has learnt. Thread: any."""

    def __init__(self, session: Session) -> None:
        self.lease = Lease(session.timeout_s)
        self._leased = LeasedSession(session, self.lease)
        self._every_s = session.timeout_s / _ASKED_WITHIN_A_SESSION
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lease", daemon=True)

    def start(self) -> None:
        """Ask from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stopping.set()

    def holds(self, term: int) -> bool:
        """Whether what was claimed in this session is still ours."""
        return self.lease.holds(term)

    def _work(self) -> None:
        while True:
            try:
                self._leased.renew()
            except RegistryError:
                pass  # not to be answered is what the lease is for
            if self._stopping.wait(self._every_s):
                return
