"""What must hold in every run, whatever fails: the promises of replication, checked as the run goes on.

    kept       what was acknowledged with acks=all is there at the end, at its offset
    steady     what a reader could see never changes
    one        one leader per epoch
    alike      two replicas agree below both their high watermarks
    forward    epochs and versions never go back; the in-sync set is never empty, and holds the leader
    whole      when the faults are over every replica is in sync again, and no producer waits
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from since2011.replication.partition_state import PartitionState

if TYPE_CHECKING:
    from consumers.sim.replication.broker import Broker


class Violation(Exception):
    """A promise was broken."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise


class Checker:
    """The history of one run."""

    def __init__(self) -> None:
        self.acked: dict[int, int] = {}
        self.seen: dict[int, int] = {}
        self._writers: dict[int, int] = {}
        self._n_states = 0

    def wrote(self, broker: int, epoch: int) -> None:
        """A leader appends."""
        if self._writers.setdefault(epoch, broker) != broker:
            raise Violation("one", f"brokers {self._writers[epoch]} and {broker} both wrote in epoch {epoch}")

    def acknowledged(self, offset: int, value: int) -> None:
        """A producer is told that ``value`` is safe at ``offset``."""
        if self.acked.setdefault(offset, value) != value:
            raise Violation("kept", f"offset {offset} was acknowledged for {self.acked[offset]} and for {value}")

    def raised(self, broker: Broker) -> None:
        """A leader's high watermark moved: consumers may read."""
        self.exposed(broker, broker.high_watermark)

    def exposed(self, broker: Broker, upto: int) -> None:
        """Readers can see everything below ``upto``."""
        for offset in range(upto - 1, -1, -1):
            value = broker.log[offset].value
            if offset in self.seen:
                if self.seen[offset] != value:
                    raise Violation("steady", f"offset {offset} was read as {self.seen[offset]}, and now as {value}")
                break
            self.seen[offset] = value

    def states(self, history: list[PartitionState]) -> None:
        """Look at what was stored since the last look."""
        for number in range(self._n_states, len(history)):
            state = history[number]
            problem = state.problem()
            if problem is not None:
                raise Violation("forward", problem)
            if number and (
                state.leader_epoch < history[number - 1].leader_epoch
                or state.controller_epoch < history[number - 1].controller_epoch
            ):
                raise Violation("forward", f"{history[number - 1]} was replaced by {state}")
        self._n_states = len(history)

    def alike(self, brokers: Iterable[Broker]) -> None:
        """Compare every two replicas below both watermarks."""
        members = [broker for broker in brokers if broker.up]
        for one in members:
            for other in members:
                upto = min(one.high_watermark, other.high_watermark)
                if one.number < other.number and one.log[:upto] != other.log[:upto]:
                    raise Violation("alike", f"replicas {one.number} and {other.number} differ below {upto}")

    def at_the_end(self, leader: Broker, state: PartitionState, brokers: list[Broker]) -> None:
        """The faults are over and everything had time to settle."""
        self.alike(brokers)
        for promise, expected in (("kept", self.acked), ("steady", self.seen)):
            for offset, value in expected.items():
                if offset >= leader.end or leader.log[offset].value != value:
                    found = leader.log[offset].value if offset < leader.end else "nothing"
                    raise Violation(promise, f"offset {offset} held {value}; the leader has {found} there")
        if set(state.isr) != set(state.replicas):
            raise Violation("whole", f"in sync are {state.isr} of {state.replicas}")
        if leader.waiting or leader.high_watermark != leader.end:
            told = f"{len(leader.waiting)} producers wait; watermark {leader.high_watermark} of {leader.end}"
            raise Violation("whole", told)
