"""ZooKeeper's tree as the page needs it: the nodes, and what the four registries say.

A cluster of fifty groups and a thousand partitions has a hundred thousand nodes, each a question to ZooKeeper. So the
groups somebody looks at are read whole; of the others as many as a look can afford.

Paper: §3.2, the broker, consumer, ownership and offset registries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

from zk_registry.operations import Children, Get, Node, NoNode, Registry

MAX_NODES = 2_000
"""Enough for a demo many times over, and a second or two of questions on a busy machine."""

_SKIPPED = ("/zookeeper", "/kafka2011/groups")
"""ZooKeeper's own, and the copies of modern groups' offsets: many, and the page has those groups from their brokers."""


@dataclass(slots=True)
class Tree:
    """All nodes in order of path, and the registries read out of them."""

    nodes: list[list[Any]] = field(default_factory=list)
    brokers: dict[str, tuple[str, int]] = field(default_factory=dict)
    admin: dict[str, str] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)


def read_tree(registry: Registry, wanted: Set[str] = frozenset(), limit: int = MAX_NODES) -> Tree:
    """Walk the tree; owners and offsets last, those of the ``wanted`` groups before the others'."""
    tree = Tree()
    large: list[tuple[bool, str, str]] = []
    waiting = deque(["/"])
    while waiting:
        for child in _visit(registry, tree, waiting.popleft()):
            match child.strip("/").split("/"):
                case ["consumers", group, "owners" | "offsets"]:
                    large.append((group not in wanted, group, child))
                case _:
                    waiting.append(child)
    for unwanted, group, top in sorted(large):
        if unwanted and len(tree.nodes) >= limit:
            tree.groups[group]["partial"] = True
            continue
        waiting.append(top)
        while waiting:
            waiting.extend(_visit(registry, tree, waiting.popleft()))
    tree.nodes.sort(key=lambda entry: str(entry[0]))
    return tree


def shared(before: Tree, after: Tree) -> Tree:
    """``after`` with every part that is as it was taken from ``before``: an hour of frames costs what changed."""
    known = {entry[0]: entry for entry in before.nodes}
    after.nodes = [old if (old := known.get(entry[0])) == entry else entry for entry in after.nodes]
    for name, group in after.groups.items():
        was = before.groups.get(name, {})
        after.groups[name] = {key: was[key] if was.get(key) == value else value for key, value in group.items()}
    return after


def changes(before: Tree, after: Tree) -> list[list[Any]]:
    """Nodes that came (or belong to another session now) and nodes that went: ``[path, "new" | "gone", session]``."""
    old = {path: session for path, _, session, _ in before.nodes}
    new = {path: session for path, _, session, _ in after.nodes}
    # A group that was too large to read, now or then, has neither lost nor gained its nodes.
    unread = tuple(
        f"/consumers/{name}/{part}/"
        for tree in (before, after)
        for name, group in tree.groups.items()
        if group.get("partial")
        for part in ("owners", "offsets")
    )
    found = [[path, "gone", session] for path, session in old.items() if path not in new]
    found += [[path, "new", session] for path, session in new.items() if old.get(path, "") != session]
    return [change for change in found if not change[0].startswith(unread)]


def _visit(registry: Registry, tree: Tree, path: str) -> list[str]:
    """Read one node; return the paths of its children."""
    parts = path.strip("/").split("/")
    is_leaf = len(parts) == 5 and parts[0] == "consumers"
    try:
        node = registry.perform(Get(path))
        names = registry.perform(Children(path)) if not is_leaf and not node.ephemeral_owner else ()
    except NoNode:
        return []  # it went away while we walked
    if path != "/":
        _add(tree, path, parts, node)
    return [child for name in names if (child := f"{path.rstrip('/')}/{name}") not in _SKIPPED]


def _add(tree: Tree, path: str, parts: list[str], node: Node) -> None:
    text = node.value.decode("utf-8", "replace")
    session = f"0x{node.ephemeral_owner:x}" if node.ephemeral_owner else None
    tree.nodes.append([path, text[:200], session, _is_watched(parts)])
    match parts:
        case ["brokers", "ids", number]:
            fields = text.split(":")
            if number.isdigit() and len(fields) == 3 and fields[2].isdigit():
                tree.brokers[number] = (fields[1], int(fields[2]))
        case ["kafka2011", "admin", number]:
            tree.admin[number] = text
        case ["consumers", group]:
            tree.groups.setdefault(group, _empty())
        case ["consumers", group, "ids", member]:
            tree.groups.setdefault(group, _empty())["members"].append(member)
            tree.groups[group]["state"] = "reading"
        case ["consumers", group, "owners", topic, partition]:
            tree.groups.setdefault(group, _empty())["owners"].setdefault(topic, {})[partition] = _member(text)
        case ["consumers", group, "offsets", topic, partition] if text.isdigit():
            tree.groups.setdefault(group, _empty())["offsets"].setdefault(topic, {})[partition] = int(text)


def _empty() -> dict[str, Any]:
    return {"kind": "algorithm1", "state": "nobody reads", "members": [], "owners": {}, "offsets": {}}


def _member(thread: str) -> str:
    """The consumer of a stream: ``group_host-1-ab-0`` is stream 0 of ``group_host-1-ab`` (0.7's thread id)."""
    consumer, dash, number = thread.rpartition("-")
    return consumer if dash and number.isdigit() else thread


def _is_watched(parts: list[str]) -> bool:
    """The lists whose change makes consumers rebalance: a group's members, the brokers, a topic's brokers."""
    match parts:
        case ["consumers", _, "ids"] | ["brokers", "ids"] | ["brokers", "topics", _]:
            return True
    return False
