"""ZooKeeper as members see it: sessions that end when they are not heard of, two nodes, one transaction."""

from __future__ import annotations

from since2011.standby.in_sync import InSync

SESSION_S = 2.0
Session = tuple[str, int]
"""A member, and which of its sessions."""


class Registry:
    """The nodes, linearizable."""

    def __init__(self) -> None:
        self.heard: dict[Session, float] = {}
        """When each session was last heard of."""
        self.disks: dict[str, str] = {}
        """The members that are there."""
        self.holder: Session | None = None
        """Whose the broker's node is."""
        self.epoch = 0
        self.in_sync: InSync | None = None
        self.history: list[tuple[str, int]] = []
        """Who was elected, in which epoch."""
        self._n = 0

    @property
    def leader(self) -> str | None:
        """The member that holds the broker's node."""
        return None if self.holder is None else self.holder[0]

    def enter(self, session: Session, disk: str, now: float) -> None:
        """A new session. A broker's node that a former one holds stays until that has ended."""
        self.heard[session], self.disks[session[0]] = now, disk

    def expire(self, session: Session) -> None:
        """The session is over."""
        self.heard.pop(session, None)
        if all(member != session[0] for member, _ in self.heard):
            self.disks.pop(session[0], None)
        if self.holder == session:
            self.holder = None

    def end_sessions(self, now: float) -> list[Session]:
        """End those that were not heard of."""
        gone = [session for session, at in self.heard.items() if now - at >= SESSION_S]
        for session in gone:
            self.expire(session)
        return gone

    def run(self, session: Session, wanted: InSync) -> tuple[int, int] | None:
        """The transaction: nobody leads, and the set is as it was read. Epoch and version."""
        version = -1 if self.in_sync is None else self.in_sync.version
        if self.holder is not None or session not in self.heard or version != wanted.version:
            return None
        self._n += 1
        self.holder, self.epoch = session, self._n
        self.in_sync = wanted._replace(version=version + 1)
        self.history.append((session[0], self.epoch))
        return self.epoch, self.in_sync.version

    def store(self, wanted: InSync) -> int | None:
        """Write the set over the version it names; None if that is not there any more."""
        self._n += 1
        if self.in_sync is None or self.in_sync.version != wanted.version:
            return None
        self.in_sync = wanted._replace(version=wanted.version + 1)
        return self.in_sync.version
