"""One numbering of a topic's partitions for today's clients, kept for good (not in 2011).

In 2011 a partition is named by its broker: ``<broker id>-<partition>``. Today's clients number a topic's partitions
0, 1, 2, … across the cluster and store offsets under that number, so a number must always mean the same log: also while
the log's broker is down, and after others have joined. A topic's row is the list of its partitions in the order they
were first seen. It only grows, at its end, and whoever extends it first has decided.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka2011.types import BrokerPartition
from zk_registry import paths
from zk_registry.operations import BadVersion, Create, Get, NodeExists, NoNode, Registry, Set


def encode_row(row: Iterable[BrokerPartition]) -> bytes:
    """The text of a row: ``0-0,0-1,1-0``."""
    return ",".join(str(partition) for partition in row).encode()


def parse_row(value: bytes) -> tuple[BrokerPartition, ...]:
    """Read a row; raise ValueError on anything else, because a guess would give numbers other meanings."""
    text = value.decode("ascii", "strict")
    return tuple(BrokerPartition.parse(part) for part in text.split(",")) if text else ()


class PartitionRows:
    """The rows of all topics. Thread: as its registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def extended(self, topic: str, present: Iterable[BrokerPartition]) -> tuple[BrokerPartition, ...]:
        """The row of ``topic`` after every partition of ``present`` has a place in it."""
        path = paths.partition_row(topic)
        wanted = sorted(present)
        while True:
            try:
                node = self._registry.perform(Get(path))
            except NoNode:
                if not wanted:
                    return ()
                try:
                    self._registry.perform(Create(path, encode_row(wanted), make_parents=True))
                except NodeExists:
                    continue
                return tuple(wanted)
            row = parse_row(node.value)
            new = [partition for partition in wanted if partition not in row]
            if not new:
                return row
            try:
                self._registry.perform(Set(path, encode_row((*row, *new)), node.version))
            except BadVersion:
                continue  # another broker extended it first; ours may be in it now
            return (*row, *new)
