"""ZooKeeper as replication sees it: sessions, one controller with an epoch, one state node with a version.

The node's writes are conditional; a controller's also on its epoch being the newest. Who loses a condition is told so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from since2011.replication.partition_state import PartitionState


class Refused(Exception):
    """A condition of the write did not hold."""


@dataclass
class Registry:
    """The nodes, linearizable."""

    state: PartitionState | None = None
    live: dict[int, int] = field(default_factory=dict)
    """Broker id to broker epoch: the transaction that created its node."""
    controller: int | None = None
    controller_epoch: int = 0
    _transactions: int = 0
    history: list[PartitionState] = field(default_factory=list)

    def register(self, broker: int) -> int:
        """A new session; its broker epoch. What the broker's former life left behind goes."""
        self.expire(broker)
        self._transactions += 1
        self.live[broker] = self._transactions
        return self._transactions

    def expire(self, broker: int) -> None:
        """The session is over: its nodes go."""
        self.live.pop(broker, None)
        if self.controller == broker:
            self.controller = None

    def run_for_controller(self, broker: int) -> int | None:
        """Become controller if there is none; the new epoch."""
        if self.controller is not None or broker not in self.live:
            return None
        self.controller = broker
        self.controller_epoch += 1
        return self.controller_epoch

    def write(self, state: PartitionState, version: int, controller_epoch: int | None = None) -> PartitionState:
        """Replace the state if the node still has ``version`` (and the writer is the newest controller)."""
        if controller_epoch is not None and controller_epoch != self.controller_epoch:
            raise Refused("controller moved")
        if self.state is not None and self.state.version != version:
            raise Refused("bad version")
        self.state = state._replace(version=version + 1 if self.state is not None else 0)
        self.history.append(self.state)
        return self.state
