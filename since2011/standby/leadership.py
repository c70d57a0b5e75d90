"""A logical broker at its leader: one in-sync set over all partitions, a high watermark in each. No I/O.

Each partition is a ``Leader`` with the rules of ``since2011.replication``; a member is in sync if it is so in every
partition, and there is one proposal for all of them. Members are numbers: 0 is a.

    lead, appended, fetched, tick, disconnected -> what to do: ``ProposeIsr`` and ``Visible``
    isr_written, isr_not_tried                  what became of a proposal; one that is refused ends the leadership
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka2011.types import TopicPartition
from since2011.replication.leader import Action, Leader, ProposeIsr, Raised, SyncRules
from since2011.replication.partition_state import PartitionState


class Visible(NamedTuple):
    """Readers of a partition may see up to ``offset``."""

    where: TopicPartition
    offset: int


Step = ProposeIsr | Visible


class Leadership:
    """One epoch of one logical broker. Thread: one."""

    def __init__(
        self, me: int, epoch: int, disks: Mapping[int, str], version: int, n_members: int, rules: SyncRules, now: float
    ) -> None:
        self.disks = dict(disks)
        self.state = PartitionState(me, epoch, tuple(sorted(disks)), tuple(range(n_members)), version=version)
        self.pending: ProposeIsr | None = None
        self.leaders: dict[TopicPartition, Leader] = {}
        self._rules, self._began = rules, now

    @property
    def epoch(self) -> int:
        """The creation id of the node that says who leads."""
        return self.state.leader_epoch

    def lead(self, where: TopicPartition, log_end: int, watermark: int, now: float) -> list[Step]:
        """Lead one more partition, whose log ends at ``log_end`` and whose readers have seen up to ``watermark``."""
        leader = Leader(self.state.leader, self.state, log_end, watermark, self._rules, now)
        leader.pending = self.pending
        self.leaders[where] = leader
        return self._raised(where, leader.begin(now))

    def appended(self, where: TopicPartition, log_end: int, now: float) -> list[Step]:
        """The leader's own disk has everything up to ``log_end``."""
        return self._raised(where, self.leaders[where].appended(log_end, now))

    def fetched(self, member: int, disk: str, offsets: Mapping[TopicPartition, int], now: float) -> list[Step]:
        """A member tells how far it has come; a partition in which its history is not the leader's is left out."""
        if member in self.state.isr and self.disks.get(member) != disk:
            if self.pending is not None:
                return []
            left = tuple(one for one in self.state.isr if one != member)
            return [self._propose(left, f"member {member} has come back with another disk")]
        steps: list[Step] = []
        joins = member not in self.state.isr and self.pending is None
        for where, leader in self.leaders.items():
            offset = offsets.get(where)
            if offset is None:
                joins = False
                continue
            done = leader.fetched(member, offset, 0, now)
            joins = joins and any(isinstance(one, ProposeIsr) for one in done)
            steps += self._raised(where, done)
        if joins:
            self.disks[member] = disk
            steps.append(self._propose((*self.state.isr, member), f"member {member} has caught up"))
        elif self.pending is None:
            self._none_pending()
        return steps

    def disconnected(self, member: int, now: float) -> None:
        """The connection on which a member asked was closed."""
        for leader in self.leaders.values():
            leader.disconnected(member, now)

    def tick(self, now: float) -> list[Step]:
        """Look for members that have fallen behind, or gone, in any partition."""
        if self.pending is not None:
            return []
        left = set(self.state.isr)
        for leader in self.leaders.values():
            for action in leader.tick(now):
                left &= set(action.isr) if isinstance(action, ProposeIsr) else left
        self._none_pending()
        if left == set(self.state.isr):
            return []
        gone = sorted(set(self.state.isr) - left)
        return [self._propose(tuple(sorted(left)), f"members {gone} have fallen behind or gone")]

    def isr_written(self, version: int, now: float) -> list[Step]:
        """The proposal is stored: only now does a smaller set count."""
        assert self.pending is not None
        self.state = self.state._replace(isr=self.pending.isr, version=version)
        self.pending = None
        steps: list[Step] = []
        for where, leader in self.leaders.items():
            steps += self._raised(where, leader.isr_written(version, now))
        return steps

    def isr_not_tried(self) -> None:
        """The proposal is known not to be stored: it may be made again."""
        self.pending = None
        self._none_pending()

    @property
    def has_enough(self) -> bool:
        """Whether as many are in sync as an acknowledgement by all of them asks for."""
        return len(self.state.isr) >= min(self._rules.min_insync, len(self.state.replicas))

    def _propose(self, isr: tuple[int, ...], why: str) -> ProposeIsr:
        self.pending = ProposeIsr(isr, self.state.version, why)
        for leader in self.leaders.values():
            leader.pending = self.pending
        return self.pending

    def _none_pending(self) -> None:
        for leader in self.leaders.values():
            leader.isr_not_tried()

    def _raised(self, where: TopicPartition, actions: Iterable[Action]) -> list[Step]:
        return [Visible(where, action.high_watermark) for action in actions if isinstance(action, Raised)]
