"""What ZooKeeper answers when it does not answer. Given; changes to this file are not used."""

from __future__ import annotations

from typing import Protocol


class NoNode(Exception):
    """There is no such node."""


class NodeExists(Exception):
    """The node is there already, yours or somebody else's."""


class ConnectionLoss(Exception):
    """The answer did not come: the operation may have happened, or not. Ask again."""


class SessionExpired(Exception):
    """Your session is over; its ephemeral nodes are gone."""


class ZooKeeper(Protocol):
    """The registry, as one session sees it. Any call may raise ConnectionLoss.

    A watch fires once, after the next change of what was read: of the names below (children), of the node (get,
    exists). Your member's ``watched(path)`` is called then, some time later, never in the middle of another call.
    """

    def session(self) -> int:
        """The number of your session."""

    def create(self, path: str, value: bytes, ephemeral: bool) -> None:
        """Make a node (and parents that are missing); NodeExists."""

    def get(self, path: str, watch: bool = False) -> tuple[bytes, int]:
        """Value, and the session that owns the node (0: it is not ephemeral); NoNode."""

    def set(self, path: str, value: bytes) -> None:
        """Change a value; NoNode."""

    def delete(self, path: str) -> None:
        """Delete a node; NoNode."""

    def children(self, path: str, watch: bool = False) -> list[str]:
        """Names of the nodes below; NoNode, and then no watch is left."""

    def exists(self, path: str, watch: bool = False) -> int | None:
        """The session that owns the node (0: not ephemeral), or None. Leaves a watch in both cases."""
