"""What of a broker has to do with groups, on a bench: real coordinator, log and copier, every step taken by hand."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from twisted.internet.task import Clock as Timers

from consumers.group_protocol.coordinator.requests import (
    JoinGroup,
    MemberAssignment,
    OffsetCommit,
    OffsetFetch,
    OffsetToCommit,
    Protocol,
    Request,
    SyncGroup,
)
from consumers.group_protocol.coordinator.service import GroupCoordinator
from consumers.group_protocol.coordinator.settings import GroupSettings
from consumers.group_protocol.copier import Copier
from consumers.group_protocol.group_service import GroupService
from consumers.group_protocol.offices import Offices
from consumers.group_protocol.offsets_copy import OffsetsCopy
from consumers.group_protocol.offsets_log import OffsetsLog, partition_of
from kafka2011.clock import ManualClock
from kafka2011.events import Journal
from kafka2011.types import TopicPartition
from tests.unit.group_protocol.bench import SomeTopics
from zk_registry.fake import FakeZooKeeper

HERE = partition_of("g")
ALL, NOTHING = frozenset({HERE}), frozenset[int]()


class PromptService(GroupService):
    """Flushes at once, in the same thread; or not at all while ``slow``."""

    slow = False

    def _flush(self) -> None:
        for number in [] if self.slow else self._log.unflushed():
            position = self._log.flush(number)
            assert self.durable is not None
            self.durable.flushed(position)
            self.deliver(self.coordinator.flushed(position, self._reactor.seconds()))


class Broker:
    """What of a broker has to do with groups."""

    def __init__(
        self, world: FakeZooKeeper, number: int, directory: Path, clock: ManualClock, *, wait_for_copies: bool = False
    ) -> None:
        self.world, self.number, self.directory, self.clock = world, number, directory, clock
        self.wait_for_copies = wait_for_copies
        self.journal = Journal(clock=clock)
        self.start(NOTHING)

    def start(self, wanted: frozenset[int]) -> None:
        self.log = OffsetsLog(self.directory, clock=self.clock)
        self.session = self.world.session()
        self.copier = Copier(
            lambda: self.session,
            self.number,
            lambda function, *values: function(*values),
            interval_s=0.5,
            journal=self.journal,
            clock=self.clock,
        )
        self.copier.start = lambda reports: setattr(self.copier, "_reports", reports)  # type: ignore[method-assign]
        self.timers = timers = Timers()
        self.offices = Offices(
            self.log, self.copier, timers, self.journal, wait_for_copies=self.wait_for_copies  # type: ignore[arg-type]
        )
        ids = count(1)
        coordinator = GroupCoordinator(
            GroupSettings(initial_rebalance_delay_ms=0),
            self.offices,
            SomeTopics(t=4),
            clock=self.clock,
            journal=self.journal,
            new_id=lambda: f"{self.number}-{next(ids)}",
        )
        self.groups = PromptService(coordinator, self.log, timers, self.journal)  # type: ignore[arg-type]
        self.offices.start(self.groups, wanted)

    def die(self) -> None:
        """kill -9, and ZooKeeper has noticed."""
        self.session.expire()
        self.log.close()

    def turn(self) -> None:
        """Let the copier do everything that is due."""
        self.pass_time(1)
        self.copier.round()

    def pass_time(self, seconds: float) -> None:
        """Let the clocks run, and what looks at them."""
        self.clock.advance(seconds)
        self.timers.advance(seconds)

    def ask(self, request: Request) -> object:
        assert not self.groups.is_loading("g"), "14"
        answers: list[object] = []
        self.groups.ask(request, object).addCallback(answers.append)
        self.groups.deliver(self.groups.coordinator.tick(self.timers.seconds()))
        return answers[0] if answers else None

    def commit(self, offset: int, member: str = "", generation: int = -1, partition: int = 0) -> object:
        offsets = (OffsetToCommit("t", partition, offset, 0, "note"),)
        return self.ask(OffsetCommit("g", generation, member, offsets, version=9 if generation > 0 else 7))

    def committed(self, partition: int = 0) -> int:
        answer = self.ask(OffsetFetch("g", (TopicPartition("t", partition),)))
        found: int = answer.offsets[0].offset  # type: ignore[attr-defined]
        return found

    def join(self, instance: str | None = None, member: str = "") -> str:
        """Become the only member, and stable."""
        protocols = (Protocol("range", b""),)
        joined = self.ask(JoinGroup("g", 10_000, 30_000, member, "consumer", protocols, instance, "c", "/h", 3))
        given = (MemberAssignment(joined.member, b"all"),)  # type: ignore[attr-defined]
        synced = self.ask(SyncGroup("g", joined.generation, joined.member, given, instance))  # type: ignore[attr-defined]
        assert synced.assignment == b"all"  # type: ignore[attr-defined]
        name: str = joined.member  # type: ignore[attr-defined]
        return name


def copies(world: FakeZooKeeper) -> dict[int, int]:
    found = OffsetsCopy(world.session(), 99).read(HERE)
    return {partition.partition: copy.offset for (_, partition), copy in found.items()}
