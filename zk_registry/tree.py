"""The whole tree as it is now, for people: ephemerals marked with the session that holds them. Paper: §3.2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from zk_registry.operations import Children, Get, NoAuth, NoNode, Registry

HIDDEN = "/zookeeper"
"""ZooKeeper's own."""


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One node; ``session_id`` is 0 for a persistent one."""

    path: str
    value: bytes
    version: int
    session_id: int

    @property
    def text(self) -> str:
        """The value as printable text, cut to a line."""
        text = self.value[:200].decode("utf-8", "backslashreplace")
        shown = text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
        return shown + ("…" if len(self.value) > 200 else "")


def walk(registry: Registry, top: str = "/") -> Iterator[TreeNode]:
    """``top`` and every node below it, parents first, in order of name; what vanishes meanwhile is left out."""
    if top == HIDDEN:
        return
    try:
        node = registry.perform(Get(top))
        names = registry.perform(Children(top))
    except (NoNode, NoAuth):
        return
    yield TreeNode(top, node.value, node.version, node.ephemeral_owner)
    for name in sorted(names, key=_numbers_by_size):
        yield from walk(registry, f"{top.rstrip('/')}/{name}")


def _numbers_by_size(name: str) -> tuple[int, str]:
    return (len(name) if name.isdigit() else 0, name)


def draw(nodes: list[TreeNode]) -> list[str]:
    """The nodes as lines, indented by depth."""
    lines = []
    for node in nodes:
        depth = 0 if node.path == "/" else node.path.count("/")
        name = node.path.rpartition("/")[2] or "/"
        value = f" = {node.text}" if node.value else ""
        mark = f"   [ephemeral, session {node.session_id:#x}]" if node.session_id else ""
        lines.append(f"{'  ' * depth}{name}{value}{mark}")
    return lines
