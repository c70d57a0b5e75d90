"""What every rule of the coordinator needs at hand, and where answers wait until they may leave.

An answer that promises durability waits here until the offsets log says it was flushed. A request that is parked is a
token kept by its member; ``Replies`` knows which tokens may still be answered. Thread: one.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from consumers.group_protocol.coordinator.events import OffsetAppendRefused
from consumers.group_protocol.coordinator.holdings import Holdings
from consumers.group_protocol.coordinator.requests import Token
from consumers.group_protocol.coordinator.results import Reply, Response
from consumers.group_protocol.coordinator.settings import (
    GroupSettings,
    InTransaction,
    LogPosition,
    OffsetLog,
    Record,
    Topics,
)
from consumers.group_protocol.coordinator.timers import Timer, Timers
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Event, Journal
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import refusal

MAX_PREFIX = 200
"""Characters of a client's own name in its member id: ids travel and are stored in strings of bounded length."""

Continuation = Callable[[float], None]
"""Called with the time once records are durable, or once it is known that they are not."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    offset: int
    then: Continuation
    failed: Continuation


class Replies:
    """Settings, timers, log, answers."""

    def __init__(
        self,
        settings: GroupSettings,
        log: OffsetLog,
        topics: Topics,
        *,
        clock: Clock = SYSTEM_CLOCK,
        journal: Journal | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        self.settings = settings
        self.topics = topics
        self.timers = Timers()
        self.holdings = Holdings(settings)
        self.now = clock.monotonic()
        """The time of the call being handled."""
        self._log = log
        self._clock = clock
        self._journal = journal or Journal(clock=clock)
        self._new_id = new_id or (lambda: str(uuid.uuid4()))
        self._open: dict[Token, tuple[str, str] | None] = {}
        """Who is owed an answer, and as which group's member it waits, if it does."""
        self._outbox: list[Reply] = []
        self._waiting: dict[int, deque[_Waiting]] = {}
        """By partition of the offsets topic."""

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def new_member_id(self, prefix: str) -> str:
        """``<client id or instance id>-<random uuid>`` (§6)."""
        return f"{prefix[:MAX_PREFIX]}-{self._new_id()}"

    def tell(self, event: Event) -> None:
        self._journal.emit(event)

    def arm(self, timer: Timer, ms: int) -> None:
        """Let ``timer`` fall due ``ms`` after the call being handled."""
        self.timers.arm(timer, self.now + ms / 1000)

    # Answers

    def open(self, token: Token) -> None:
        """From now on ``token`` is owed an answer."""
        self._open[token] = None

    def park(self, token: Token, group: str, member: str) -> None:
        """``token`` waits as ``member`` of ``group``."""
        if token in self._open:
            self._open[token] = (group, member)

    def forget(self, token: Token | None) -> tuple[str, str] | None:
        """Owe ``token`` no answer any more: its connection is gone, or a newer request took its place.

        Returns the group and member it was parked for.
        """
        return self._open.pop(token, None)

    def answer(self, token: Token | None, response: Response) -> None:
        """Answer ``token`` once; one that was forgotten is passed over."""
        if token in self._open:
            del self._open[token]
            self._outbox.append(Reply(token, response))

    def take_answers(self) -> list[Reply]:
        """Empty the outbox."""
        answers, self._outbox = self._outbox, []
        return answers

    # Durability

    def is_available(self, group: str) -> bool:
        return self._log.is_available(group)

    def append(self, group: str, records: Sequence[Record], then: Continuation, failed: Continuation) -> None:
        """Log ``records``; call ``then`` when they are durable, ``failed`` when they never will be."""
        try:
            position = self._log.append(group, records)
        except Kafka2011Error as error:
            self.tell(OffsetAppendRefused(group=group, error=str(error)))
            failed(self.now)
            return
        self._wait(position, then, failed)

    def append_in_transaction(
        self, group: str, records: Sequence[Record], of: InTransaction, then: Continuation, failed: Continuation
    ) -> ErrorCode:
        """Log ``records`` as part of a transaction; why the log refuses them, 0 if it does not."""
        try:
            position = self._log.append(group, records, of)
        except Kafka2011Error as error:
            code, _ = refusal(error)
            return code
        self._wait(position, then, failed)
        return ErrorCode.NONE

    def _wait(self, position: LogPosition | None, then: Continuation, failed: Continuation) -> None:
        if position is None:
            then(self.now)
        else:
            waiting = self._waiting.setdefault(position.partition, deque())
            waiting.append(_Waiting(position.offset, then, failed))

    def flushed(self, position: LogPosition) -> None:
        """Everything up to ``position`` is durable: go on with what waited for it, in order."""
        waiting = self._waiting.get(position.partition)
        while waiting and waiting[0].offset <= position.offset:
            waiting.popleft().then(self.now)

    def flush_failed(self, partition: int) -> None:
        """Nothing that still waits on ``partition`` will ever be durable."""
        for each in self._waiting.pop(partition, ()):
            each.failed(self.now)


def nothing(_now: float) -> None:
    """A continuation for records nobody waits for."""
