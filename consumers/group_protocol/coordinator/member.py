"""A member of a classic group, with its parked requests as state.

See docs/group-protocol.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from consumers.group_protocol.coordinator.holdings import member_size
from consumers.group_protocol.coordinator.requests import JoinGroup, Protocol, Token


@dataclass(slots=True)
class Member:
    """``joining`` and ``syncing`` say that a request is parked; its token may be gone with the connection."""

    id: str
    instance: str | None
    client_id: str
    client_host: str
    session_ms: int
    rebalance_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    is_new: bool = True
    """No answer to a join yet: the long new-member timer applies, even while parked."""
    joining: bool = False
    join_token: Token | None = None
    syncing: bool = False
    sync_token: Token | None = None

    @classmethod
    def of(cls, member_id: str, request: JoinGroup) -> Member:
        """The member a join request describes."""
        return cls(
            member_id,
            request.instance,
            request.client_id,
            request.client_host,
            request.session_ms,
            request.rebalance_ms,
            request.protocols,
        )

    @property
    def size(self) -> int:
        """Bytes kept of it."""
        names = [self.id, self.instance, self.client_id, self.client_host, *(each.name for each in self.protocols)]
        return member_size(names, [self.assignment, *(each.metadata for each in self.protocols)])

    @property
    def is_static(self) -> bool:
        return self.instance is not None

    @property
    def is_parked(self) -> bool:
        return self.joining or self.syncing

    def update(self, request: JoinGroup) -> None:
        """Take over what a repeated join says."""
        self.session_ms, self.rebalance_ms = request.session_ms, request.rebalance_ms
        self.protocols = request.protocols
        self.client_id, self.client_host = request.client_id, request.client_host

    def metadata(self, protocol: str | None) -> bytes:
        """The subscription bytes for the chosen protocol."""
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")

    def supports(self, protocol: str) -> bool:
        return any(each.name == protocol for each in self.protocols)

    def vote(self, candidates: set[str]) -> str | None:
        """The first candidate in this member's own order."""
        return next((each.name for each in self.protocols if each.name in candidates), None)
