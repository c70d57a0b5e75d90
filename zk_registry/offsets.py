"""The offset registry: for each group and partition the offset of the next message to read. Persistent.

Paper: §3.2, "the offset registry stores for each subscribed partition, the offset of the last consumed message"; as in
0.7 what is stored is where to go on.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka2011.events import Journal
from kafka2011.types import BrokerPartition, is_legal_name
from zk_registry import paths
from zk_registry.events import NodeIgnored
from zk_registry.operations import Check, Children, Create, Exists, Get, Multi, NodeExists, NoNode, Registry, Set

_MAX_OFFSET = (1 << 63) - 1
_ROUNDS = 5


def parse_offset(value: bytes) -> int | None:
    """Read an offset node; None if it holds no decimal number from 0 to 2^63 - 1."""
    text = value.strip()
    if not 0 < len(text) <= 19 or not text.isdigit():
        return None
    offset = int(text)
    return offset if offset <= _MAX_OFFSET else None


class OffsetRegistry:
    """The stored offsets of one group. Thread: as its registry."""

    def __init__(self, registry: Registry, group: str, *, journal: Journal | None = None) -> None:
        self._registry, self._group, self._journal = registry, group, journal or Journal()

    def topics(self) -> list[str]:
        """The topics of which the group has stored offsets."""
        return [name for name in self._children(f"{paths.group(self._group)}/offsets") if is_legal_name(name)]

    def read(self, topic: str, partition: BrokerPartition) -> int | None:
        """One stored offset; None if there is none, or none that can be read (then an event says so)."""
        path = paths.offset(self._group, topic, partition)
        try:
            value = self._registry.perform(Get(path)).value
        except NoNode:
            return None
        offset = parse_offset(value)
        if offset is None:
            self._journal.emit(NodeIgnored(path=path, reason="not an offset"))
        return offset

    def read_all(self, topic: str) -> dict[BrokerPartition, int]:
        """Every readable offset of a topic."""
        found = {}
        for name in self._children(paths.offsets(self._group, topic)):
            try:
                partition = BrokerPartition.parse(name)
            except ValueError:
                self._journal.emit(
                    NodeIgnored(path=f"{paths.offsets(self._group, topic)}/{name}", reason="not a partition")
                )
                continue
            offset = self.read(topic, partition)
            if offset is not None:
                found[partition] = offset
        return found

    def write(self, topic: str, offsets: Mapping[BrokerPartition, int], *, fence: str | None = None) -> None:
        """Store offsets in one transaction: all or none.

        ``fence`` is a node that must exist at that moment, usually the writer's own ephemeral id: without it the write
        is refused with NoNode naming the fence, so that a writer whose session has ended cannot undo its successor's.
        """
        nodes = {paths.offset(self._group, topic, partition): b"%d" % n for partition, n in sorted(offsets.items())}
        for _ in range(_ROUNDS):
            there = {path: self._registry.perform(Exists(path)) is not None for path in nodes}
            if not all(there.values()):
                try:
                    self._registry.perform(Create(paths.offsets(self._group, topic), make_parents=True))
                except NodeExists:
                    pass  # the usual case
            writes = (Set(path, value) if there[path] else Create(path, value) for path, value in nodes.items())
            try:
                self._registry.perform(Multi((*((Check(fence),) if fence else ()), *writes)))
                return
            except NodeExists:
                # Created by another writer since we looked.
                continue
            except NoNode as error:
                if error.path == fence:
                    raise
        raise NodeExists(paths.offsets(self._group, topic), "others keep creating and deleting here; try again")

    def _children(self, path: str) -> tuple[str, ...]:
        try:
            names: tuple[str, ...] = self._registry.perform(Children(path))
        except NoNode:
            return ()
        return names
