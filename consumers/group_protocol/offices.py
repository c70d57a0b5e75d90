"""Which groups this broker speaks for when there are several brokers, and how it comes to know their offsets.

    want(numbers)   the partitions of the offsets log that are this broker's by the view of the cluster
    gained          claimed in ZooKeeper, copies read -> newer ones adopted into our own log -> served; until then 14
    lost            groups forgotten -> what was appended is flushed -> copied -> the claim given up
    silence         the lease of the claims runs out before the session can: nobody is served until ZooKeeper answers
    session over    all of it claimed again; where nobody came in between, groups go on as they are

A commit is answered when it is durable in our own log (spec §11) and copied to where the next coordinator looks, so
that whatever becomes of this one, no answer was untrue. The later commit wins, by its time; a coordinator's times are
later than all it has adopted. Members are not copied: where another broker has coordinated meanwhile, those our log
remembers are forgotten, and join again.

Paper: §3.2 (offsets in ZooKeeper, ownership by ephemeral nodes). Spec: modern-group-protocol §11.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, count

from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThread

from consumers.group_protocol.coordinator.events import OffsetAppendRefused
from consumers.group_protocol.coordinator.offset_book import CommittedOffset
from consumers.group_protocol.coordinator.records import Key, RecordType, offset_record, read_key, read_offset
from consumers.group_protocol.coordinator.settings import LogPosition, Record
from consumers.group_protocol.copier import Copier
from consumers.group_protocol.events import CoordinatorBack, CoordinatorSilenced, OffsetsAdopted
from consumers.group_protocol.group_service import GroupService
from consumers.group_protocol.offsets_copy import Copies, GroupPartition
from consumers.group_protocol.offsets_log import OffsetsLog, partition_of
from kafka2011.broker.reactor import DelayedCall, Reactor, every
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Journal

START_PATIENCE_S = 10.0
"""How long a start waits for the first copies; after that the port opens, and groups without theirs are told 14."""
STOP_PATIENCE_S = 5.0
LOOK_S = 0.25
"""How often the lease and the copies that are waited for are looked at."""
_ALL = 1 << 63

Change = dict[GroupPartition, CommittedOffset | None]


class Offices:
    """The offsets log as the coordinator writes it, with a copy in ZooKeeper. Thread: reactor."""

    def __init__(
        self,
        log: OffsetsLog,
        copier: Copier,
        reactor: Reactor,
        journal: Journal,
        *,
        wait_for_copies: bool = True,
        copy_timeout_s: float = 5.0,
    ) -> None:
        """``wait_for_copies``: answer a commit once it is copied, or say after ``copy_timeout_s`` that it is not."""
        self._log, self._copier, self._reactor, self._journal = log, copier, reactor, journal
        self._wait_for_copies, self._copy_timeout_s = wait_for_copies, copy_timeout_s
        self._groups: GroupService | None = None
        self._wanted: frozenset[int] = frozenset()
        self._loading: set[int] = set()
        self._loaded: set[int] = set()
        """Partitions whose groups are in the coordinator's memory."""
        self._tickets: dict[int, int] = {}
        self._numbers = count(1)
        self._leaving: set[int] = set()
        self._unsettled: set[int] = set()
        """Ours, but not yet with anything of ours in the log."""
        self._not_durable: dict[int, deque[tuple[int, Change]]] = {}
        self._not_copied: dict[int, deque[tuple[int, float]]] = {}
        """Commits that wait for their copies: where in the log they end, and when they have waited long enough."""
        self._terms: dict[int, int] = {}
        """The session in which each was claimed: what is ours is ours while its lease holds."""
        self._silenced: frozenset[int] = frozenset()
        self._looking: LoopingCall | None = None
        self._first_try: Deferred[None] | None = None
        self._patience: DelayedCall | None = None

    # Life

    def start(self, groups: GroupService, wanted: frozenset[int]) -> Deferred[None]:
        """Claim ``wanted``; fires when each was tried once, so that a broker alone is complete when it opens."""
        self._groups = groups
        groups.loading, groups.durable = self._loading, self
        self._copier.start(self)
        self._looking = every(self._reactor, LOOK_S, self._look)
        self.want(wanted)
        self._first_try = Deferred()
        if wanted:
            self._patience = self._reactor.callLater(START_PATIENCE_S, self.tried)
            return self._first_try
        return self._fired()

    def tried(self) -> None:
        """Every claim wanted so far was tried once, or it takes too long."""
        if self._first_try is not None:
            self._fired()

    def _fired(self) -> Deferred[None]:
        first, self._first_try = self._first_try, None
        assert first is not None
        if self._patience is not None and self._patience.active():
            self._patience.cancel()
        first.callback(None)
        return first

    def stop(self) -> Deferred[None]:
        """Copy what is left, then give every claim up; fires when done."""
        self._wanted = frozenset()
        self._tickets.clear()
        if self._looking is not None and self._looking.running:
            self._looking.stop()
        return deferToThread(self._copier.close, STOP_PATIENCE_S)

    def state(self) -> dict[str, object]:
        """What ``/state`` shows."""
        silenced = {number for number in self._wanted - self._loading if not self._may_speak(number)}
        return {"coordinates": sorted(self._wanted - self._loading - silenced), "loading": sorted(self._loading),
                "silenced": sorted(silenced), "uncopied": self._copier.n_pending}  # fmt: skip

    @property
    def trouble(self) -> str | None:
        """Why groups of this broker are not spoken for: ZooKeeper cannot be asked; None if all are, or soon will be."""
        return self._copier.trouble if any(not self._may_speak(number) for number in self._wanted) else None

    # The coordinator's log

    def append(self, group: str, records: Sequence[Record]) -> LogPosition:
        """Append to our own log; offsets are copied once they are durable there, and whoever commits waits for that."""
        position = self._log.append(group, records)
        changes: Change = {}
        for record in records:
            key = read_key(record.key)
            if key.partition is not None:
                changes[group, key.partition] = None if record.value is None else read_offset(record.value)
        if changes:
            self._not_durable.setdefault(position.partition, deque()).append((position.offset, changes))
        return replace(position, copied=True) if changes and self._wait_for_copies else position

    def is_available(self, group: str) -> bool:
        """Whether the log has the group's offsets, and nobody else can be speaking for it."""
        return self._log.is_available(group) and self._may_speak(partition_of(group))

    def _may_speak(self, number: int) -> bool:
        return number not in self._silenced and self._copier.holds(self._terms.get(number, 0))

    def flushed(self, position: LogPosition) -> None:
        """What became durable is to be copied; a partition we are leaving may be given up now."""
        number, waiting = position.partition, self._not_durable.get(position.partition)
        changes: Change = {}
        mark = 0
        while waiting and waiting[0][0] <= position.offset:
            mark, some = waiting.popleft()
            changes.update(some)
        self._settle(number)
        if changes:
            late = self._reactor.seconds() + self._copy_timeout_s
            self._not_copied.setdefault(number, deque()).append((mark, late))
            self._copier.put(number, changes, mark)
        self._maybe_leave(number)

    def copied(self, number: int, mark: int) -> None:
        """What was put up to ``mark`` is where the next coordinator looks: its commits may be answered."""
        waiting = self._not_copied.get(number)
        while waiting and waiting[0][0] <= mark:
            waiting.popleft()
        self._serving().copied(LogPosition(number, mark, copied=True))

    def flush_failed(self, number: int) -> None:
        """Nobody was told that these are committed."""
        self._not_durable.pop(number, None)
        self._not_copied.pop(number, None)
        self._maybe_leave(number)

    # Silence

    def _look(self) -> None:
        """Notice a lease that ran out, one that holds again, and commits that have waited long enough."""
        now = self._reactor.seconds()
        for number, waiting in self._not_copied.items():
            mark = None
            while waiting and waiting[0][1] <= now:
                mark, _ = waiting.popleft()
            if mark is not None:
                self._serving().not_copied(LogPosition(number, mark, copied=True))
        silenced = frozenset(n for n in self._loaded - self._loading if not self._copier.holds(self._terms.get(n, 0)))
        if silenced and not self._silenced:
            self._journal.emit(CoordinatorSilenced(partitions=tuple(sorted(silenced))))
        elif self._silenced and not silenced:
            self._journal.emit(CoordinatorBack())
        back, self._silenced = self._silenced - silenced, silenced
        if back:
            self._serving().coordinator.restart_sessions(lambda group: partition_of(group) in back, now)

    # Coming and going

    def want(self, numbers: frozenset[int]) -> None:
        """The cluster looks so that these are ours."""
        gained, lost, self._wanted = numbers - self._wanted, self._wanted - numbers, numbers
        if lost:
            self._resign(numbers)
        for number in lost:
            self._tickets.pop(number, None)
            self._loading.discard(number)
            self._loaded.discard(number)
            self._unsettled.discard(number)
            self._terms.pop(number, None)
            self._leaving.add(number)
            self._maybe_leave(number)
        self._take(gained)

    def _take(self, numbers: Iterable[int]) -> None:
        for number in sorted(numbers):
            self._leaving.discard(number)
            self._loading.add(number)
            self._tickets[number] = ticket = next(self._numbers)
            self._copier.take(number, ticket)

    def lost(self, numbers: frozenset[int]) -> None:
        """The session is over: until they are claimed again, others may have come in between."""
        self._unsettled -= numbers
        for number in numbers:
            self._terms.pop(number, None)
            if self._not_copied.pop(number, None):
                self._serving().not_copied(LogPosition(number, _ALL, copied=True))
        self._take(numbers & self._wanted)

    def taken(self, number: int, ticket: int, undisputed: bool, found: Copies, term: int) -> None:
        """Ours while the lease of session ``term`` holds: adopt what others have copied since, and serve."""
        if self._tickets.get(number) != ticket:
            return
        groups, now = self._serving(), self._reactor.seconds()
        if not undisputed:
            self._resign(self._wanted - {number})
            self._loaded.discard(number)
        self._unsettled.add(number)
        self._terms[number] = term
        adopted = self._adopt(number, undisputed, found)
        live = (record for _, record in self._log.latest(number) if record.value is not None)
        if number not in self._loaded:
            self._loaded.add(number)
            groups.coordinator.load(chain(live, adopted), now)
        else:
            # Members are as they were. Of commits that were refused for want of a copy some are in the log.
            groups.coordinator.load(chain(filter(_is_offset, live), adopted), now)
            groups.coordinator.restart_sessions(lambda group: partition_of(group) == number, now)
        self._loading.discard(number)
        groups.deliver(())  # flushes what was adopted

    def _adopt(self, number: int, undisputed: bool, found: Copies) -> list[Record]:
        """Write what the copies know better into our log, and copy what our log knows better."""
        own: dict[GroupPartition, tuple[int, CommittedOffset | None]] = {}
        news: dict[str, list[Record]] = {}
        for when_ms, record in self._log.latest(number):
            try:
                key = read_key(record.key)
                if key.type is RecordType.OFFSET:
                    own[_of(key)] = _last_word(when_ms, record)
                elif not undisputed and record.value is not None:
                    news.setdefault(key.group, []).append(Record(record.key, None))
            except ValueError:
                continue  # told when it is loaded
        newer = {at: copy for at, copy in found.items() if at not in own or own[at][0] < copy.commit_ms}
        older = {at: ours for at, (_, ours) in own.items() if at not in newer and found.get(at) != ours}
        adopted = [(group, offset_record(group, partition, copy)) for (group, partition), copy in newer.items()]
        for group, record in adopted:
            news.setdefault(group, []).append(record)
        for group, records in news.items():
            try:
                self._log.append(group, records)
            except Kafka2011Error as error:
                self._journal.emit(OffsetAppendRefused(group=group, error=str(error)))
        if older:
            self._copier.put(number, older)
        if newer:
            n_groups = len({group for group, _ in newer})
            self._journal.emit(OffsetsAdopted(partition=number, n_groups=n_groups, n_offsets=len(newer)))
        return [record for _, record in adopted]

    def _settle(self, number: int) -> None:
        if number in self._unsettled and number not in self._log.unflushed():
            self._unsettled.discard(number)
            self._copier.settle(number)

    def _maybe_leave(self, number: int) -> None:
        # Not what the log says: a thread may have flushed it, and we, who answer the commit, have not heard of it yet.
        if number in self._leaving and not self._not_durable.get(number):
            self._leaving.discard(number)
            self._copier.release(number)

    def _resign(self, keep: frozenset[int]) -> None:
        groups = self._serving()
        now = self._reactor.seconds()
        groups.deliver(groups.coordinator.resign(lambda group: partition_of(group) in keep, now))

    def _serving(self) -> GroupService:
        assert self._groups is not None, "not started"
        return self._groups


def _is_offset(record: Record) -> bool:
    try:
        return read_key(record.key).type is RecordType.OFFSET
    except ValueError:
        return False


def _of(key: Key) -> GroupPartition:
    assert key.partition is not None
    return key.group, key.partition


def _last_word(when_ms: int, record: Record) -> tuple[int, CommittedOffset | None]:
    if record.value is None:
        return when_ms, None
    committed = read_offset(record.value)
    return committed.commit_ms, committed
