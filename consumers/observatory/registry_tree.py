"""ZooKeeper's tree as the page needs it: the nodes, and what the four registries say.

Paper: §3.2, the broker, consumer, ownership and offset registries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from zk_registry.operations import Children, Get, Node, NoNode, Registry

MAX_NODES = 5_000
"""Enough for a demo many times over; a cluster of fifty groups and a thousand partitions is shown in part."""

_SKIPPED = ("/zookeeper",)


@dataclass(slots=True)
class Tree:
    """All nodes in order of path, and the registries read out of them."""

    nodes: list[list[Any]] = field(default_factory=list)
    brokers: dict[str, tuple[str, int]] = field(default_factory=dict)
    admin: dict[str, str] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)


def read_tree(registry: Registry) -> Tree:
    """Walk the tree, breadth first within limits."""
    tree = Tree()
    waiting = ["/"]
    while waiting and len(tree.nodes) < MAX_NODES:
        path = waiting.pop(0)
        try:
            node = registry.perform(Get(path))
            children = registry.perform(Children(path)) if not node.ephemeral_owner else ()
        except NoNode:
            continue  # it went away while we walked
        if path != "/":
            _add(tree, path, node)
        waiting += [
            child for name in children if (child := f"{path.rstrip('/')}/{name}") not in _SKIPPED
        ]
    tree.nodes.sort(key=lambda entry: str(entry[0]))
    return tree


def _add(tree: Tree, path: str, node: Node) -> None:
    text = node.value.decode("utf-8", "replace")
    session = f"0x{node.ephemeral_owner:x}" if node.ephemeral_owner else None
    parts = path.strip("/").split("/")
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
    """The lists whose change makes consumers rebalance: a group's members, a topic's brokers."""
    return (len(parts) == 3 and parts[0] == "consumers" and parts[2] == "ids") or (
        len(parts) == 3 and parts[:2] == ["brokers", "topics"]
    )
