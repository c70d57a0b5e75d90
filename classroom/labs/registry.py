"""A ZooKeeper for lab 5: the project's own in-memory one, with others who act between any two calls of the student's.

Every call of the student's is one operation at the server. Before each of them a test may let somebody else act, and
the answer of any of them may get lost. All of it is written down as a transcript.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from zk_registry import operations as ops
from zk_registry.fake import FakeSession, FakeZooKeeper

ERRORS = (ops.NoNode, ops.NodeExists, ops.ConnectionLoss, ops.SessionExpired, ops.NotEmpty)


class Registry:
    """One session of the student's program."""

    def __init__(self, world: FakeZooKeeper, lines: list[str], name: str = "you") -> None:
        self._world, self._lines, self._name = world, lines, name
        self._session: FakeSession = world.session()
        self.n_operations = 0
        self.before: dict[int, Callable[[], None]] = {}
        """What others do before the n-th operation, counted from 1."""
        self.lose: dict[int, bool] = {}
        """Operations whose answer gets lost: done (True) or not."""
        self.fired: deque[str] = deque()
        """Watches that fired and were not handed over yet."""

    # -- what the student's program may ask ----------------------------------------------------------------------

    def session(self) -> int:
        """The number of this session."""
        return self._session.session_id

    def create(self, path: str, value: bytes, ephemeral: bool) -> None:
        """Make a node; parents that are missing are made, too."""
        self._perform(ops.Create(path, bytes(value), ephemeral=bool(ephemeral), make_parents=True))

    def get(self, path: str, watch: bool = False) -> list[object]:
        """Value and session of the owner (0: not ephemeral)."""
        node = self._perform(ops.Get(path, watch=bool(watch)))
        return [node.value, node.ephemeral_owner]

    def set(self, path: str, value: bytes) -> None:
        """Change a value."""
        self._perform(ops.Set(path, bytes(value)))

    def delete(self, path: str) -> None:
        """Delete a node."""
        self._perform(ops.Delete(path))

    def children(self, path: str, watch: bool = False) -> list[str]:
        """Names of the nodes below."""
        return list(self._perform(ops.Children(path, watch=bool(watch))))

    def exists(self, path: str, watch: bool = False) -> int | None:
        """Session of the owner (0: not ephemeral), or None if there is no node."""
        node = self._perform(ops.Exists(path, watch=bool(watch)))
        return None if node is None else node.ephemeral_owner

    # -- what the grader does -------------------------------------------------------------------------------------

    def fresh(self) -> None:
        """Count from the next operation on."""
        self.n_operations = 0
        self.before, self.lose = {}, {}

    def expire(self) -> None:
        """End the session at the server and begin a new one, as a client library does."""
        self._session.expire()
        self._lines.append(f"-- the session of {self._name} ends")
        self._session = self._world.session()
        self.fired.clear()

    def hand_over(self, member: Any) -> None:
        """Let the watches that fired arrive."""
        self._world.deliver()
        while self.fired:
            path = self.fired.popleft()
            self._lines.append(f"-- {self._name} is told: {path} changed")
            member.watched(path)

    def _perform(self, operation: ops.Operation) -> Any:
        self.n_operations += 1
        if (act := self.before.pop(self.n_operations, None)) is not None:
            act()
        if (done := self.lose.pop(self.n_operations, None)) is not None:
            self._session.lose_reply(applied=done)
        try:
            answer = self._session.perform(operation, self.fired.append)
        except ops.RegistryError as error:
            self._lines.append(f"{self._name}: {operation} -> {error}")
            raise
        self._lines.append(f"{self._name}: {operation} -> {answer}")
        return answer


def tree(world: FakeZooKeeper, top: str = "/consumers") -> Mapping[str, tuple[bytes, int]]:
    """All nodes with a value below a path, with the session that owns each."""
    spectator = world.session()
    found: dict[str, tuple[bytes, int]] = {}

    def walk(path: str) -> None:
        for name in spectator.perform(ops.Children(path)):
            node = spectator.perform(ops.Get(f"{path}/{name}"))
            if node.value:
                found[f"{path}/{name}"] = (node.value, node.ephemeral_owner)
            walk(f"{path}/{name}")

    if spectator.perform(ops.Exists(top)) is not None:
        walk(top)
    spectator.close()
    return found
