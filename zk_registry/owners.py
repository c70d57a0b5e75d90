"""The ownership registry: which consumer stream reads a partition now. Ephemeral: it dies with its owner.

Paper: §3.2, "the ownership registry has one path for every subscribed partition and the path value is the id of the
consumer currently consuming from this partition".
"""

from __future__ import annotations

from kafka2011.types import BrokerPartition
from zk_registry import paths
from zk_registry.operations import Children, Create, DeleteIfMine, Get, NodeExists, NoNode, Registry


class OwnerRegistry:
    """Who owns which partition of one group. Thread: as its registry."""

    def __init__(self, registry: Registry, group: str) -> None:
        self._registry, self._group = registry, group

    def claim(self, topic: str, partition: BrokerPartition, thread_id: str) -> bool:
        """Become the owner; False if someone else is. Ours already is a claim: an answer may have been lost."""
        path = paths.owner(self._group, topic, partition)
        try:
            self._registry.perform(Create(path, thread_id.encode(), ephemeral=True, make_parents=True))
        except NodeExists:
            try:
                node = self._registry.perform(Get(path))
            except NoNode:
                return False
            return bool(node.ephemeral_owner == self._registry.session_id and node.value == thread_id.encode())
        return True

    def release(self, topic: str, partition: BrokerPartition) -> bool:
        """Give a partition up; False if it was not this session's. A stranger's node is never touched."""
        return bool(self._registry.perform(DeleteIfMine(paths.owner(self._group, topic, partition))))

    def owner(self, topic: str, partition: BrokerPartition) -> str | None:
        """The id of the owning stream, None if nobody owns the partition."""
        try:
            value: bytes = self._registry.perform(Get(paths.owner(self._group, topic, partition))).value
        except NoNode:
            return None
        return value.decode("utf-8", "replace")

    def owners(self, topic: str) -> dict[BrokerPartition, str]:
        """Every owned partition of a topic."""
        return {partition: name for partition, (name, session) in self.nodes(topic).items() if session}

    def nodes(self, topic: str) -> dict[BrokerPartition, tuple[str, int]]:
        """What stands where owners of a topic's partitions do, and in which session; 0: in none, so it owns nothing."""
        try:
            names = self._registry.perform(Children(paths.owners(self._group, topic)))
        except NoNode:
            return {}
        found = {}
        for name in names:
            try:
                partition = BrokerPartition.parse(name)
            except ValueError:
                continue  # no partition is called that, so nobody owns it
            try:
                node = self._registry.perform(Get(paths.owner(self._group, topic, partition)))
            except NoNode:
                continue
            found[partition] = node.value.decode("utf-8", "replace"), node.ephemeral_owner
        return found
