"""One simulated member: its disk, its role, and what it does with each message.

The decisions are those of ``since2011.standby``; a changed rule (``rules.py``) is the only difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from consumers.sim.standby.log import SimLog
from kafka2011.errors import InvalidMessageSize
from kafka2011.types import TopicPartition
from since2011.replication.leader import ProposeIsr, SyncRules
from since2011.standby.copying import offsets_told, part_for, take
from since2011.standby.follow import FollowRequest, Part, Position
from since2011.standby.in_sync import MEMBERS, InSync, may_lead
from since2011.standby.leadership import Leadership, Step
from zk_registry.lease import Lease

if TYPE_CHECKING:
    from consumers.sim.standby.world import World

FOLLOW_EVERY_S, TICK_EVERY_S, FLUSH_EVERY_S, RENEW_EVERY_S = 0.04, 0.1, 0.03, 0.2
MAX_BYTES = 150
LAG_S = 1.0


class Waiting(NamedTuple):
    """A produce that asked for all and has not been answered."""

    partition: int
    offset: int
    end: int
    payload: bytes


Answer = tuple[int, list[tuple[Part, bytes]]]


class SimMember:
    """Everything that survives a crash is said to be on disk."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.up, self.life, self.n_disks = False, 0, 0
        self.disk = ""  # on disk
        self.logs: list[SimLog] = []  # on disk
        self.term = 0
        self.new_disk()
        self.begin_again()

    def new_disk(self) -> None:
        """The disk was replaced."""
        self.n_disks += 1
        self.disk = self.name if self.world.rules.any_disk else f"{self.name}{self.n_disks}"
        self.logs = [SimLog(half_entries=self.world.rules.half_entries) for _ in range(self.world.n_partitions)]

    def begin_again(self) -> None:
        """Follow, whatever this member was."""
        self.leadership: Leadership | None = None
        self.epoch = -1
        self.waiting: list[Waiting] = []
        self.max_bytes = MAX_BYTES
        self.lease = Lease(self.world.session_s, clock=self.world)

    @property
    def session(self) -> tuple[str, int]:
        """Its session with ZooKeeper, if it has one."""
        return self.name, self.term

    # -- serving clients ------------------------------------------------------------------------------------------

    @property
    def serves(self) -> bool:
        """Whether clients are answered here."""
        if self.leadership is None:
            return False
        return self.world.rules.serve_after_session or self.lease.holds(self.term)

    def produce(self, partition: int, payload: bytes, data: bytes) -> None:
        """A produce that asks to be acknowledged by all."""
        if not self.serves or self.leadership is None or not self.leadership.has_enough:
            return
        self.world.checker.serves(self)
        log = self.logs[partition]
        offset = log.append(data)
        self.waiting.append(Waiting(partition, offset, log.end_offset, payload))

    def flush(self) -> None:
        """The disk has everything; followers need no flush to have it."""
        for partition, log in enumerate(self.logs):
            moved, log.flushed = log.end_offset > log.flushed, log.end_offset
            if moved and self.leadership is not None:
                self._do(self.leadership.appended(_where(partition), log.flushed, self.world.now))

    def retain(self) -> None:
        """A leader forgets its oldest segment, if all of it is visible."""
        log = self.world.random.choice(self.logs)
        if self.serves and len(log.segments) > 2 and log.segments[1] <= log.watermark:
            log.keep_from(log.segments[1])

    # -- leading --------------------------------------------------------------------------------------------------

    def lead(self, epoch: int, version: int, in_sync: InSync) -> None:
        """This member was elected."""
        disks = {MEMBERS.index(name): disk for name, disk in in_sync.disks.items()}
        rules = SyncRules(lag_s=LAG_S, grace_s=0.3, min_insync=self.world.min_insync)
        me = MEMBERS.index(self.name)
        self.epoch = epoch
        leadership = self.leadership = Leadership(me, epoch, disks, version, len(MEMBERS), rules, self.world.now)
        for partition, log in enumerate(self.logs):
            log.flushed = log.end_offset
            log.history.assign(epoch, log.end_offset)
            self._do(leadership.lead(_where(partition), log.flushed, log.watermark, self.world.now))

    def answer(self, request: FollowRequest) -> Answer | None:
        """Answer a follower; None is a refusal."""
        leadership = self.leadership
        if leadership is None or request.epoch != self.epoch or not self.serves:
            return None
        positions = {at.where: at for at in request.positions}
        logs = {_where(partition): log for partition, log in enumerate(self.logs)}
        told = offsets_told(positions, logs, lambda where: logs[where].history)
        self._do(leadership.fetched(MEMBERS.index(request.member), request.disk, told, self.world.now))
        parts = []
        for where, log in logs.items():
            part = part_for(where, positions.get(where), log, log.history, request.max_bytes)
            if part is not None:
                parts.append((part, log.bytes_at(part.offset, part.size)))
        return self.epoch, parts

    def hung_up(self, member: str) -> None:
        """A follower's connection was closed."""
        if self.leadership is not None:
            self.leadership.disconnected(MEMBERS.index(member), self.world.now)

    def tick(self) -> None:
        """The leader's timer."""
        if self.leadership is None:
            return
        if not self.serves:
            self.world.lose(self, "its lease is over")
        else:
            self._do(self.leadership.tick(self.world.now))

    def stored(self, epoch: int, version: int | None) -> None:
        """What became of a proposal."""
        if self.leadership is None or self.epoch != epoch:
            return
        if version is None:
            self.world.lose(self, "another was elected")
        else:
            self._do(self.leadership.isr_written(version, self.world.now))

    def _do(self, steps: list[Step]) -> None:
        assert self.leadership is not None
        for step in steps:
            if isinstance(step, ProposeIsr):
                disks = {MEMBERS[number]: self.leadership.disks[number] for number in step.isr}
                self.world.propose(self, InSync(disks, step.version), step.why)
            else:
                self._show(step.where.partition, step.offset)
        if self.world.rules.expose_early:
            for partition, log in enumerate(self.logs):
                self._show(partition, log.flushed)

    def _show(self, partition: int, upto: int) -> None:
        log = self.logs[partition]
        log.watermark = max(log.watermark, upto)
        if not self.serves:
            return
        self.world.checker.serves(self)
        self.world.checker.visible(self, partition, log, self.world.members)
        for one in [one for one in self.waiting if one.partition == partition and one.end <= log.watermark]:
            self.waiting.remove(one)
            self.world.checker.acked[partition, one.offset] = one.payload

    # -- following ------------------------------------------------------------------------------------------------

    def request(self, leader: SimMember) -> FollowRequest:
        """What to ask the leader."""
        positions = []
        for partition, log in enumerate(self.logs):
            latest = leader.logs[partition].history.latest if self.world.rules.no_epochs else log.history.latest
            positions.append(Position(_where(partition), latest, log.end_offset, log.watermark, log.first_offset))
        epoch = self.world.registry.epoch
        return FollowRequest(self.name, self.disk, epoch, 0, self.max_bytes, tuple(positions))

    def answered(self, answer: Answer | None) -> None:
        """Do what the leader's answer asks for."""
        if answer is None or self.leadership is not None or answer[0] < self.epoch:
            return
        self.epoch = answer[0]
        for part, data in answer[1]:
            log = self.logs[part.where.partition]
            try:
                take(part, memoryview(data), log, log.history)
            except InvalidMessageSize:
                self.max_bytes = max(self.max_bytes, 4 + int.from_bytes(data[:4], "big"))

    def candidacy(self) -> InSync | None:
        """The set to run with, if this member may."""
        registry = self.world.registry
        if self.world.rules.elect_any_member and registry.in_sync is not None:
            return InSync({self.name: self.disk}, registry.in_sync.version)
        return may_lead(registry.in_sync, self.name, self.disk, registry.disks)


def _where(partition: int) -> TopicPartition:
    return TopicPartition("t", partition)
