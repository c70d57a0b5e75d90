"""The tree of nodes inside the fake ZooKeeper: what each operation does and which watches it sets off.

Pure: no sessions, no time. Every change returns the watches it touches, as (kind, path).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from zk_registry import operations as ops

Touched = tuple[Literal["data", "children"], str]
Write = ops.Create | ops.Set | ops.Delete | ops.Check


class _Node:
    __slots__ = ("children", "czxid", "n_created", "owner", "value", "version")

    def __init__(self, value: bytes, owner: int, czxid: int) -> None:
        self.value, self.owner, self.czxid, self.version = value, owner, czxid, 0
        self.children: set[str] = set()
        self.n_created = 0
        """Children it was ever given: what the server numbers sequential ones by."""


class Tree:
    """Nodes by path. Thread: one."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {"/": _Node(b"", 0, 0)}
        self._zxid = 0

    def children(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(self._at(path).children))

    def get(self, path: str) -> ops.Node:
        node = self._at(path)
        return ops.Node(node.value, node.version, node.owner, node.czxid)

    def exists(self, path: str) -> ops.Node | None:
        node = self._nodes.get(path)
        return None if node is None else ops.Node(b"", node.version, node.owner, node.czxid)

    def version(self, path: str) -> int:
        return self._at(path).version

    def owned_by(self, session_id: int) -> list[str]:
        """The ephemerals of a session, in order of path."""
        return sorted(path for path, node in self._nodes.items() if node.owner == session_id)

    def write(self, operations: Sequence[Write], session_id: int) -> list[Touched]:
        """Do all of them or, raising the first refusal, none."""
        self._zxid += 1
        touched: list[Touched] = []
        undo: list[Callable[[], object]] = []
        try:
            for operation in operations:
                touched += self._write_one(operation, session_id, undo)
        except ops.RegistryError:
            for back in reversed(undo):
                back()
            raise
        return touched

    def named(self, operation: ops.Create) -> ops.Create:
        """The creation with the name the server gives: sequential ones are numbered."""
        if not operation.sequential:
            return operation
        parent = self._nodes.get(_split(operation.path)[0])
        n_created = 0 if parent is None else parent.n_created
        return replace(operation, path=f"{operation.path}{n_created:010d}", sequential=False)

    def _write_one(self, operation: Write, session_id: int, undo: list[Callable[[], object]]) -> list[Touched]:
        asked = operation.path
        if isinstance(operation, ops.Create):
            operation = self.named(operation)
        path = operation.path
        match operation:
            case ops.Create(_, value, ephemeral):
                parent, name = _split(path)
                above = self._at(parent, asked)
                if path in self._nodes:
                    raise ops.NodeExists(asked)
                if above.owner:
                    raise ops.EphemeralParent(asked)
                self._nodes[path] = _Node(value or b"", session_id if ephemeral else 0, self._zxid)
                above.children.add(name)
                above.n_created += 1
                undo.append(lambda: self._uncreate(path, above, name))
                return [("data", path), ("children", parent)]
            case ops.Set(_, value, version):
                node = self._at(path)
                _check_version(path, node, version)
                before = node.value, node.version
                node.value, node.version = value, node.version + 1
                undo.append(lambda: _restore(node, *before))
                return [("data", path)]
            case ops.Delete(_, version):
                parent, name = _split(path)
                node = self._at(path)
                _check_version(path, node, version)
                if node.children:
                    raise ops.NotEmpty(path)
                above = self._nodes[parent]
                del self._nodes[path]
                above.children.discard(name)
                undo += [lambda: self._nodes.update({path: node}), lambda: above.children.add(name)]
                return [("data", path), ("children", path), ("children", parent)]
            case ops.Check(_, version):
                _check_version(path, self._at(path), version)
                return []

    def _uncreate(self, path: str, above: _Node, name: str) -> None:
        del self._nodes[path]
        above.children.discard(name)
        above.n_created -= 1

    def _at(self, path: str, asked: str | None = None) -> _Node:
        try:
            return self._nodes[path]
        except KeyError:
            raise ops.NoNode(asked or path) from None


def _split(path: str) -> tuple[str, str]:
    parent, _, name = path.rpartition("/")
    return parent or "/", name


def _check_version(path: str, node: _Node, version: int) -> None:
    if version not in (-1, node.version):
        raise ops.BadVersion(path, f"it is {node.version}, not {version}")


def _restore(node: _Node, value: bytes, version: int) -> None:
    node.value, node.version = value, version
