"""Which groups this broker speaks for when there are several brokers, and how it comes to know their offsets.

    want(numbers)   the partitions of the offsets log that are this broker's by the view of the cluster
    gained          claimed in ZooKeeper, copies read -> newer ones adopted into our own log -> served; until then 14
    lost            groups forgotten -> what was appended is flushed -> copied -> the claim given up
    session over    all of it claimed again; where nobody came in between, groups go on as they are

A commit is answered when it is durable in our own log (spec §11), and copied a moment after. The later commit wins, by
its time; a coordinator's times are later than all it has adopted. Members are not copied: where another broker has
coordinated meanwhile, those our log remembers are forgotten, and join again.

Paper: §3.2 (offsets in ZooKeeper, ownership by ephemeral nodes). Spec: modern-group-protocol §11.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, count

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from consumers.group_protocol.coordinator.events import OffsetAppendRefused
from consumers.group_protocol.coordinator.offset_book import CommittedOffset
from consumers.group_protocol.coordinator.records import Key, RecordType, offset_record, read_key, read_offset
from consumers.group_protocol.coordinator.settings import LogPosition, Record
from consumers.group_protocol.copier import Copier
from consumers.group_protocol.events import OffsetsAdopted
from consumers.group_protocol.group_service import GroupService
from consumers.group_protocol.offsets_copy import Copies, GroupPartition
from consumers.group_protocol.offsets_log import OffsetsLog, partition_of
from kafka2011.broker.reactor import DelayedCall, Reactor
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Journal

START_PATIENCE_S = 10.0
"""How long a start waits for the first copies; after that the port opens, and groups without theirs are told 14."""
STOP_PATIENCE_S = 5.0

Change = dict[GroupPartition, CommittedOffset | None]


class Offices:
    """The offsets log as the coordinator writes it, with a copy in ZooKeeper. Thread: reactor."""

    def __init__(self, log: OffsetsLog, copier: Copier, reactor: Reactor, journal: Journal) -> None:
        self._log, self._copier, self._reactor, self._journal = log, copier, reactor, journal
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
        self._first_try: Deferred[None] | None = None
        self._patience: DelayedCall | None = None

    # Life

    def start(self, groups: GroupService, wanted: frozenset[int]) -> Deferred[None]:
        """Claim ``wanted``; fires when each was tried once, so that a broker alone is complete when it opens."""
        self._groups = groups
        groups.loading, groups.durable = self._loading, self
        self._copier.start(self)
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
        return deferToThread(self._copier.close, STOP_PATIENCE_S)

    def state(self) -> dict[str, object]:
        """What ``/state`` shows."""
        return {"coordinates": sorted(self._wanted - self._loading), "loading": sorted(self._loading),
                "uncopied": self._copier.n_pending}  # fmt: skip

    # The coordinator's log

    def append(self, group: str, records: Sequence[Record]) -> LogPosition:
        """Append to our own log; offsets are copied once they are durable there."""
        position = self._log.append(group, records)
        changes: Change = {}
        for record in records:
            key = read_key(record.key)
            if key.partition is not None:
                changes[group, key.partition] = None if record.value is None else read_offset(record.value)
        if changes:
            self._not_durable.setdefault(position.partition, deque()).append((position.offset, changes))
        return position

    def is_available(self, group: str) -> bool:
        """As the log says."""
        return self._log.is_available(group)

    def flushed(self, position: LogPosition) -> None:
        """What became durable is to be copied; a partition we are leaving may be given up now."""
        waiting = self._not_durable.get(position.partition)
        changes: Change = {}
        while waiting and waiting[0][0] <= position.offset:
            changes.update(waiting.popleft()[1])
        self._settle(position.partition)
        if changes:
            self._copier.put(position.partition, changes)
        self._maybe_leave(position.partition)

    def flush_failed(self, number: int) -> None:
        """Nobody was told that these are committed."""
        self._not_durable.pop(number, None)
        self._maybe_leave(number)

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
        self._take(numbers & self._wanted)

    def taken(self, number: int, ticket: int, undisputed: bool, found: Copies) -> None:
        """Ours: adopt what others have copied since, and serve."""
        if self._tickets.get(number) != ticket:
            return
        groups, now = self._serving(), self._reactor.seconds()
        if not undisputed:
            self._resign(self._wanted - {number})
            self._loaded.discard(number)
        self._unsettled.add(number)
        adopted = self._adopt(number, undisputed, found)
        if number not in self._loaded:
            self._loaded.add(number)
            live = (record for _, record in self._log.latest(number) if record.value is not None)
            groups.coordinator.load(chain(live, adopted), now)
        elif adopted:
            groups.coordinator.load(adopted, now)
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


def _of(key: Key) -> GroupPartition:
    assert key.partition is not None
    return key.group, key.partition


def _last_word(when_ms: int, record: Record) -> tuple[int, CommittedOffset | None]:
    if record.value is None:
        return when_ms, None
    committed = read_offset(record.value)
    return committed.commit_ms, committed
