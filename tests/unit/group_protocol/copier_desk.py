"""A copier on a fake ZooKeeper whose rounds are turned by hand, and someone who writes down its reports."""

from __future__ import annotations

from consumers.group_protocol.coordinator.offset_book import CommittedOffset
from consumers.group_protocol.copier import Copier
from consumers.group_protocol.offsets_copy import Copies, OffsetsCopy
from consumers.group_protocol.offsets_log import partition_of
from kafka2011.clock import ManualClock
from kafka2011.events import Journal
from kafka2011.types import TopicPartition
from zk_registry import operations as ops
from zk_registry.fake import FakeZooKeeper

HERE = partition_of("g")


def committed(offset: int) -> CommittedOffset:
    return CommittedOffset(offset, 0, "", offset)


class Heard:
    """Writes down the reports."""

    def __init__(self) -> None:
        self.takes: list[tuple[int, int, bool]] = []
        self.copies: Copies = {}
        self.losses: list[frozenset[int]] = []
        self.n_tried = 0
        self.term = 0
        self.marks: list[tuple[int, int]] = []

    def copied(self, number: int, mark: int) -> None:
        self.marks.append((number, mark))

    def taken(self, number: int, ticket: int, undisputed: bool, found: Copies, term: int) -> None:
        self.term = term
        self.takes.append((number, ticket, undisputed))
        self.copies.update(found)

    def lost(self, numbers: frozenset[int]) -> None:
        self.losses.append(numbers)

    def tried(self) -> None:
        self.n_tried += 1


class Desk:
    """A copier whose rounds are turned by hand."""

    def __init__(self, world: FakeZooKeeper, broker_id: int = 1, interval_s: float = 0.5) -> None:
        self.clock, self.journal, self.heard = ManualClock(), Journal(), Heard()
        self.session = world.session()
        self.writes: list[ops.Operation] = []
        plain = self.session.perform

        def perform(operation: ops.Operation, watcher: object = None) -> object:
            if isinstance(operation, ops.Create | ops.Set | ops.Delete | ops.Multi | ops.DeleteIfMine):
                self.writes.append(operation)
            return plain(operation, watcher)  # type: ignore[arg-type]

        self.session.perform = perform  # type: ignore[method-assign, assignment]
        self.copier = Copier(
            lambda: self.session,
            broker_id,
            lambda function, *values: function(*values),
            interval_s=interval_s,
            journal=self.journal,
            clock=self.clock,
        )
        self.copier._reports = self.heard  # as ``start``, without the thread

    def hold(self, number: int = HERE) -> None:
        self.copier.take(number, 1)
        self.copier.round()
        self.writes.clear()
        assert self.heard.takes[-1] == (number, 1, True)

    @property
    def told(self) -> list[str]:
        return [entry.event.name for entry in self.journal.since()]


def stored(world: FakeZooKeeper, number: int = HERE) -> dict[TopicPartition, int]:
    copies = OffsetsCopy(world.session(), 99).read(number)
    return {partition: copy.offset for (_, partition), copy in copies.items()}
