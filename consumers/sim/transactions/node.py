"""A coordinator in one leadership: the real one, its log and messages in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka2011.types import TopicPartition
from since2011.topics.internal import partition_of
from since2011.transactions.coordinator import To, TransactionCoordinator
from since2011.transactions.events import (
    Answer,
    Event,
    Initialize,
    Mark,
    Marked,
    NeedProducerId,
    NotWritten,
    Write,
    Written,
)
from since2011.transactions.transaction import Transaction
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from consumers.sim.transactions.world import World

NAME = "copier"
NUMBER = partition_of(NAME)
QUICK_MS, AGAIN_MS = 40, 100
Reply = Callable[[Answer], None]


@dataclass(slots=True)
class StateRecord:
    """A record of the state topic; until it is committed a take-over may lose it."""

    value: Transaction | None
    committed: bool = False


class Node:
    """Thread: one."""

    def __init__(self, world: World, epoch: int) -> None:
        self._world, self.epoch = world, epoch
        self.alive = self.leads = True
        self._coordinator = TransactionCoordinator()
        found = next((record.value for record in reversed(world.state_log)), None)
        self._do(self._coordinator.elected(NUMBER, epoch, [] if found is None else [found], world.now))

    @property
    def speaks(self) -> bool:
        """It lives, leads, and its lease says so (design D22)."""
        return self.alive and self.leads

    def ask(self, event: Event) -> None:
        """A request; its token is what to call with the answer."""
        if self.speaks:
            self._do(self._coordinator.deliver(NAME, event, self._world.now))
        else:
            token: Reply = getattr(event, "token")  # noqa: B009 - every request has one
            token(Answer(token, ErrorCode.NOT_COORDINATOR))

    def verify(self, producer_id: int, epoch: int, partition: TopicPartition) -> ErrorCode:
        """A leader asks about the first batch of a transaction."""
        if not self.speaks:
            return ErrorCode.NOT_COORDINATOR
        return self._coordinator.verify(NAME, producer_id, epoch, [partition])[partition]

    def tick(self) -> None:
        """Look for transactions that had their time."""
        if self.speaks:
            self._do(self._coordinator.look_for_timeouts(self._world.now))

    def resigns(self) -> None:
        """It has learnt that it leads no more."""
        if self.alive:
            self._do(self._coordinator.resigned(NUMBER, self._world.now))

    def _deliver(self, event: Event) -> None:
        if self.alive:
            self._do(self._coordinator.deliver(NAME, event, self._world.now, self.epoch))

    def _do(self, steps: list[To]) -> None:
        for _, _, _, action in steps:
            match action:
                case Answer():
                    action.token(action)
                case Write():
                    self._write(action)
                case Mark():
                    for partition in sorted(action.partitions):
                        self._mark(action, partition)
                case NeedProducerId(event):
                    fresh = self._world.next_producer_id()
                    self._deliver(Initialize(event.token, event.timeout_ms, event.expected, fresh))

    def _write(self, action: Write) -> None:
        world = self._world
        if not self.leads:
            world.after(QUICK_MS, lambda: self._deliver(NotWritten(ErrorCode.NOT_COORDINATOR)))
            return
        record = StateRecord(action.value)
        world.state_log.append(record)

        def stored() -> None:
            if not self.alive:
                return
            if self.leads:
                record.committed = True
                self._deliver(Written())
            else:
                self._deliver(NotWritten(ErrorCode.NOT_COORDINATOR))

        world.after(world.random.randint(1, 20), stored)

    def _mark(self, action: Mark, partition: TopicPartition) -> None:
        """Send a marker until it is answered; one that was superseded is given up."""
        world = self._world
        answered: list[ErrorCode] = []

        def arrive() -> None:
            held = world.partitions[partition]
            error = held.mark(world.now, action.producer_id, action.epoch, action.commit, self.epoch)
            if not world.loses():
                world.after(world.random.randint(1, QUICK_MS // 2), lambda: told(error))

        def told(error: ErrorCode) -> None:
            answered.append(error)
            if error == ErrorCode.NONE:
                self._deliver(Marked(action.producer_id, action.epoch, partition))

        def again() -> None:
            if self.alive and not answered and NUMBER in self._coordinator.served:
                self._mark(action, partition)

        if not world.loses():
            world.after(world.random.randint(1, QUICK_MS // 2), arrive)
        world.after(AGAIN_MS, again)
