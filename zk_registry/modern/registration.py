"""A broker's own node since 0.8: one transaction creates it and writes it; the number of that creation is its epoch.

Level-triggered like the registration of 2011: ``reconcile`` writes the node if the present session has none. If it is
there already its owner decides, as there: our session's is ours, another's is waited for as long as a session may take
to end, and then this broker has the wrong id and is told so.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka2011.clock import SYSTEM_CLOCK, Clock
from zk_registry.modern import paths
from zk_registry.modern.texts import BrokerEntry
from zk_registry.operations import Create, Exists, Get, Multi, Node, NodeExists, NoNode, Set
from zk_registry.registration import POLL_S, BrokerIdTaken
from zk_registry.states import Session


class ModernRegistration:
    """One broker in ``/brokers/ids`` below the modern chroot. Thread: one."""

    def __init__(
        self,
        session: Session,
        broker_id: int,
        entry: BrokerEntry,
        *,
        clock: Clock = SYSTEM_CLOCK,
        on_doubt: Callable[[str], None] = lambda path: None,
    ) -> None:
        """``on_doubt`` is called, in any thread, when the node may be gone: ``reconcile`` again."""
        self._session, self._entry, self._clock, self._on_doubt = session, entry.encode(), clock, on_doubt
        self._path, self._broker_id = paths.broker(broker_id), broker_id
        self.epoch = -1
        """The number of the creation; -1 before the first."""
        self.term = 0
        """Which of this client's sessions it was made in."""

    def reconcile(self) -> None:
        """Be registered; RegistryError or BrokerIdTaken if that cannot be."""
        deadline: float | None = None
        while True:
            term = self._session.incarnation
            node: Node | None = self._session.perform(Exists(self._path, watch=True), self._on_doubt)
            if node is not None and node.ephemeral_owner == self._session.session_id:
                self.epoch, self.term = node.czxid, term
                return
            if node is not None:
                now = self._clock.monotonic()
                # A server with the usual tick of 2 s keeps no session for less than 4 s and ends it up to a tick late.
                deadline = deadline or now + max(self._session.timeout_s, 4.0) + 3.0
                if now >= deadline:
                    raise BrokerIdTaken(self._clash())
                self._clock.sleep(POLL_S)
                continue
            try:
                self._session.perform(
                    Multi((Create(self._path, None, ephemeral=True), Set(self._path, self._entry, version=0)))
                )
            except NodeExists:
                continue

    def _clash(self) -> str:
        try:
            held = self._session.perform(Get(self._path)).value[:200].decode("utf-8", "replace")
        except NoNode:
            held = "somebody who has just left"
        return (
            f"broker id {self._broker_id} is taken: {self._path} below the modern chroot is held by {held}; "
            "give this broker another brokerid, or stop that one"
        )
