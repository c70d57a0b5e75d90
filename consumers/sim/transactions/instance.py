"""An instance of a program that copies input to output, exactly once: read, copy, commit the position, in transactions.

A generator: it yields what it asks and is sent the answer, or LOST when none came in time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random

from consumers.sim.transactions.partition import OFFSETS
from kafka2011.types import TopicPartition
from since2011.transactions.events import AddPartitions, Answer, End, Event, Initialize
from since2011.wire.error_codes import ErrorCode

OUTPUTS = (TopicPartition("output", 0), TopicPartition("output", 1))
TIMEOUT_MS = 1_500
TRY_AGAIN = frozenset({
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
})  # fmt: skip
MOST_TRIES = 40


class Dies(Exception):
    """The instance can go on no more: it was fenced, or gives up."""


class Unanswered(Exception):
    """A record was sent, nobody knows whether it is there, and the program would rather abort than wait."""


@dataclass(frozen=True, slots=True)
class ToCoordinator:
    """A request; ``make`` puts the token into the event."""

    make: Callable[[object], Event]


@dataclass(frozen=True, slots=True)
class ToLeader:
    """A record for a partition."""

    partition: TopicPartition
    producer: tuple[int, int, int]
    label: str
    value: int


@dataclass(frozen=True, slots=True)
class Position:
    """Which input comes next, as the group has committed it; the answer's epoch carries it."""


Request = ToCoordinator | ToLeader | Position
LOST = Answer(None, ErrorCode.REQUEST_TIMED_OUT)
Program = Generator[Request, Answer, Answer]


@dataclass(slots=True)
class Instance:
    """One process with the transactional id."""

    number: int
    random: Random
    n_inputs: int
    always_commits: bool = False
    dead: bool = False
    outcomes: dict[str, bool | None] = field(default_factory=dict)
    """Label of a transaction to whether it was committed, as the program was told; None: it was not told."""

    def run(self) -> Program:
        """Copy until nothing is left; after a record that may be anywhere, abort and go on with the next epoch."""
        identity = yield from self._asked(ToCoordinator(lambda token: Initialize(token, TIMEOUT_MS)))
        while True:
            try:
                return (yield from self._work(identity))
            except Unanswered:
                had = (identity.producer_id, identity.epoch)
                yield from self._end(*had, commit=False)
                identity = yield from self._asked(
                    ToCoordinator(lambda token, had=had: Initialize(token, TIMEOUT_MS, had))  # type: ignore[misc]
                )

    def _work(self, identity: Answer) -> Program:
        producer, epoch = identity.producer_id, identity.epoch
        sequences = dict.fromkeys(OUTPUTS, 0)
        while True:
            position = (yield from self._asked(Position())).epoch
            if position >= self.n_inputs:
                return identity
            label = f"{self.number}.{len(self.outcomes)}"
            commit = self.always_commits or self.random.random() < 0.7
            end = min(self.n_inputs, position + self.random.randint(1, 4))
            self.outcomes[label] = None
            for value in range(position, end):
                yield from self._copy(producer, epoch, sequences, label, value)
            yield from self._add(producer, epoch, OFFSETS)
            yield from self._asked(ToLeader(OFFSETS, (producer, epoch, 0), label, end))
            yield from self._end(producer, epoch, commit=commit)
            self.outcomes[label] = commit

    def _end(self, producer: int, epoch: int, *, commit: bool) -> Program:
        return (yield from self._asked(ToCoordinator(lambda token: End(token, producer, epoch, commit))))

    def _copy(
        self, producer: int, epoch: int, sequences: dict[TopicPartition, int], label: str, value: int
    ) -> Program:
        partition = OUTPUTS[value % 2]
        yield from self._add(producer, epoch, partition)
        record = ToLeader(partition, (producer, epoch, sequences[partition]), label, value)
        answer = yield record
        if answer is LOST and self.random.random() < 0.3:
            raise Unanswered
        if answer.error:
            answer = yield from self._asked(record)
        sequences[partition] += 1
        return answer

    def _add(self, producer: int, epoch: int, partition: TopicPartition) -> Program:
        wanted = frozenset({partition})
        return (yield from self._asked(ToCoordinator(lambda token: AddPartitions(token, producer, epoch, wanted))))

    def _asked(self, request: Request) -> Program:
        """Ask until there is an answer that says something."""
        for _ in range(MOST_TRIES):
            answer = yield request
            if answer.error == ErrorCode.NONE:
                return answer
            if answer is not LOST and answer.error not in TRY_AGAIN:
                raise Dies(answer.error.name)
        raise Dies("gave up")
