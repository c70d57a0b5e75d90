"""What is decided about a partition: who leads, in which epoch, which replicas are in sync.

The truth is the partition's state node in ZooKeeper. The controller writes it when it elects a leader, the leader when
the in-sync set changes; each write is conditional on the version of the node that the writer has seen.
"""

from __future__ import annotations

from typing import NamedTuple

NO_LEADER = -1


class PartitionState(NamedTuple):
    """A decision, and the version of the node it is stored in."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    """In the order of assignment; the first is preferred as leader."""
    controller_epoch: int = 0
    """Of the controller that took this decision; a leader that writes the in-sync set repeats it."""
    version: int = 0

    def problem(self) -> str | None:
        """What is impossible about it; None if nothing is."""
        if not self.isr:
            return "the in-sync set is empty"
        if len(set(self.isr)) != len(self.isr) or not set(self.isr) <= set(self.replicas):
            return f"the in-sync set {self.isr} is not a part of the replicas {self.replicas}"
        if self.leader not in (NO_LEADER, *self.isr):
            return f"the leader {self.leader} is not in sync"
        return None
