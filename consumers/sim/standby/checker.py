"""What must hold in every run (the invariants of replication, for one in-sync set over all partitions).

    kept      what was acknowledged by all is there at the end, at its offset
    steady    what a reader could see never changes: no offset ever means another message
    one       nobody serves while another leads, or may
    held      what is visible is held by every member in sync
    alike     two members' bytes are equal below both watermarks
    entries   what is visible is whole messages
    forward   epochs rise; the in-sync set is never empty
    whole     when the faults are over every member is in sync, and everything is visible
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consumers.sim.replication.checker import Violation
from kafka2011.errors import WireError

if TYPE_CHECKING:
    from consumers.sim.standby.log import SimLog
    from consumers.sim.standby.member import SimMember
    from consumers.sim.standby.registry import Registry


class Checker:
    """The history of one run."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.acked: dict[tuple[int, int], bytes] = {}
        """Partition and offset to payload."""
        self.seen: dict[tuple[int, int], bytes] = {}
        self._checked: dict[int, int] = {}

    def serves(self, member: SimMember) -> None:
        """A member answers a client."""
        if (self._registry.leader, self._registry.epoch) != (member.name, member.epoch):
            raise Violation("one", f"{member.name} serves in epoch {member.epoch}; its session has ended")

    def visible(self, leader: SimMember, partition: int, log: SimLog, members: list[SimMember]) -> None:
        """Readers of a partition may see up to the leader's watermark."""
        try:
            found = log.messages(log.watermark)
        except WireError as error:
            raise Violation("entries", f"{leader.name} shows what is no message: {error}") from None
        for offset, payload in found.items():
            if self.seen.setdefault((partition, offset), payload) != payload:
                raise Violation("steady", f"{partition}@{offset} was {self.seen[partition, offset]!r}, is {payload!r}")
        in_sync = self._registry.in_sync
        for member in members:
            counts = in_sync is not None and in_sync.disks.get(member.name) == member.disk
            if counts and member.logs[partition].end_offset < log.watermark:
                raise Violation("held", f"{member.name} is in sync and has not what {leader.name} shows")

    def alike(self, members: list[SimMember]) -> None:
        """Compare every two members below both watermarks."""
        for one in members:
            for other in members:
                for mine, its in zip(one.logs, other.logs, strict=True):
                    start = max(mine.first_offset, its.first_offset)
                    size = min(mine.watermark, its.watermark) - start
                    if one.name < other.name and size > 0 and mine.bytes_at(start, size) != its.bytes_at(start, size):
                        raise Violation("alike", f"{one.name} and {other.name} differ below {start + size}")

    def forward(self) -> None:
        """Look at what ZooKeeper holds."""
        epochs = [epoch for _, epoch in self._registry.history]
        if epochs != sorted(set(epochs)) or (self._registry.in_sync is not None and not self._registry.in_sync.disks):
            raise Violation("forward", f"epochs {epochs[-3:]}, in sync {self._registry.in_sync}")

    def at_the_end(self, leader: SimMember, members: list[SimMember]) -> None:
        """The faults are over and everything had time to settle."""
        self.alike(members)
        in_sync = self._registry.in_sync
        if in_sync is None or set(in_sync.disks) != {member.name for member in members}:
            raise Violation("whole", f"in sync are {in_sync and sorted(in_sync.disks)}")
        for partition, log in enumerate(leader.logs):
            if log.watermark != log.end_offset:
                raise Violation("whole", f"{log.end_offset - log.watermark} bytes of {partition} are not visible")
            try:
                found = log.messages(log.end_offset)
            except WireError as error:
                raise Violation("entries", f"the log holds what is no message: {error}") from None
            for promise, expected in (("kept", self.acked), ("steady", self.seen)):
                for (its, offset), payload in expected.items():
                    if its == partition and offset >= log.first_offset and found.get(offset) != payload:
                        raise Violation(promise, f"{its}@{offset} held {payload!r}; now {found.get(offset)!r}")
