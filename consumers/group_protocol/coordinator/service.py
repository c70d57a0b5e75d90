"""The coordinator: requests in, answers out, time as an argument.

See docs/group-protocol.md. It does no I/O: commits go to an injected log, and what waits for
durability is answered when ``flushed`` is told. Thread: one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from consumers.group_protocol.coordinator.admin import Admin
from consumers.group_protocol.coordinator.events import RecordUnreadable
from consumers.group_protocol.coordinator.group import ClassicGroup
from consumers.group_protocol.coordinator.groups import Group, Groups
from consumers.group_protocol.coordinator.join import Joining
from consumers.group_protocol.coordinator.membership import Membership
from consumers.group_protocol.coordinator.offsets import Offsets
from consumers.group_protocol.coordinator.rebalance import Rebalance
from consumers.group_protocol.coordinator.records import Key, read_group, read_key, read_offset
from consumers.group_protocol.coordinator.replies import Replies
from consumers.group_protocol.coordinator.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupHeartbeat,
    DeleteGroups,
    DescribeGroups,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    Request,
    SyncGroup,
    Token,
)
from consumers.group_protocol.coordinator.results import Reply, refusal
from consumers.group_protocol.coordinator.settings import GroupSettings, LogPosition, OffsetLog, Record, Topics
from consumers.group_protocol.coordinator.timers import Timer
from consumers.group_protocol.kip848.group import ConsumerGroup
from consumers.group_protocol.kip848.heartbeat import Heartbeats
from consumers.group_protocol.kip848.records import restore
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Journal
from since2011.wire.error_codes import ErrorCode
from since2011.wire.group_records import GroupRecordType

EXPIRY = Timer("expiry")
NOTHING_OPEN: Mapping[int, list[Record]] = MappingProxyType({})
AGAIN_MS = 1_000
"""After this a timer that fell due while its group could not be served is looked at again."""


class GroupCoordinator:
    """Every call returns the answers it set free: its own, and perhaps those of parked requests."""

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
        """``clock`` is asked for the wall time of commits and for the first deadline; ``new_id`` makes member ids."""
        self._replies = Replies(settings, log, topics, clock=clock, journal=journal, new_id=new_id)
        self._groups = Groups(self._replies)
        self._rebalance = Rebalance(self._replies)
        self._joining = Joining(self._replies, self._groups, self._rebalance)
        self._membership = Membership(self._replies, self._groups, self._rebalance)
        self._offsets = Offsets(self._replies, self._groups, self._rebalance)
        self._admin = Admin(self._replies, self._groups)
        self._heartbeats = Heartbeats(self._replies, self._groups)
        self._replies.arm(EXPIRY, settings.offsets_retention_check_ms)

    def handle(self, token: Token, request: Request, now: float) -> list[Reply]:
        """Take a request; its own answer may come now, or from a later call."""
        self._replies.now = now
        self._replies.open(token)
        group = getattr(request, "group", None)
        if group is not None and not self._replies.is_available(group):
            self._replies.answer(token, refusal(request, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return self._replies.take_answers()
        match request:
            case JoinGroup():
                self._joining.join(token, request)
            case SyncGroup():
                self._membership.sync(token, request)
            case Heartbeat():
                self._membership.heartbeat(token, request)
            case LeaveGroup():
                self._membership.leave(token, request)
            case OffsetCommit():
                self._offsets.commit(token, request)
            case OffsetFetch():
                self._offsets.fetch(token, request)
            case OffsetDelete():
                self._offsets.delete(token, request)
            case DescribeGroups():
                self._admin.describe(token, request)
            case ListGroups():
                self._admin.list(token, request)
            case DeleteGroups():
                self._admin.delete(token, request)
            case ConsumerGroupHeartbeat():
                self._heartbeats.heartbeat(token, request)
            case ConsumerGroupDescribe():
                self._admin.describe_consumers(token, request)
        return self._replies.take_answers()

    def tick(self, now: float) -> list[Reply]:
        """Let every timer fire that is due."""
        self._replies.now = now
        while (timer := self._replies.timers.pop_due(now)) is not None:
            self._fire(timer)
        return self._replies.take_answers()

    def next_deadline(self) -> float | None:
        """When ``tick`` has something to do next."""
        return self._replies.timers.next_deadline()

    def drop(self, token: Token, now: float) -> list[Reply]:
        """The connection is gone: owe it no answer. The member stays (§23), unless it was never answered."""
        self._replies.now = now
        self._joining.abandoned(token)
        return self._replies.take_answers()

    def flushed(self, position: LogPosition, now: float) -> list[Reply]:
        """The offsets log is durable up to ``position``."""
        self._replies.now = now
        self._replies.flushed(position)
        return self._replies.take_answers()

    def flush_failed(self, partition: int, now: float) -> list[Reply]:
        """Nothing that waits on this partition of the offsets log will become durable."""
        self._replies.now = now
        self._replies.flush_failed(partition)
        return self._replies.take_answers()

    def resign(self, is_ours: Callable[[str], bool], now: float) -> list[Reply]:
        """Forget the groups another broker coordinates now; whoever waits in them is told so (16)."""
        self._replies.now = now
        for group in self._groups:
            if not is_ours(group.name):
                self._bury(group)
        return self._replies.take_answers()

    def transaction_ended(self, number: int, producer_id: int, *, committed: bool) -> None:
        """A transaction's marker is in partition ``number`` of the offsets log: its offsets count, or never were."""
        self._offsets.transaction_ended(number, producer_id, committed=committed)

    def is_available(self, group: str) -> bool:
        """Whether this coordinator may speak for ``group`` at all."""
        return self._replies.is_available(group)

    def groups(self) -> dict[str, Group]:
        """The groups as they stand, to look at."""
        return {group.name: group for group in self._groups}

    def _bury(self, group: Group) -> None:
        if isinstance(group, ClassicGroup):
            self._rebalance.remove_stale(group, ErrorCode.NOT_COORDINATOR, "coordinated elsewhere")
        else:
            for member_id in group.members:
                self._heartbeats.cancel(group, member_id)
        self._groups.discard(group)

    # Timers

    def _fire(self, timer: Timer) -> None:
        if timer == EXPIRY:
            self._expire()
            return
        if not self._replies.is_available(timer.group):
            # Members are refused meanwhile: nobody is put out for not having been heard.
            self._replies.arm(timer, AGAIN_MS)
            return
        group = self._groups.get(timer.group)
        if isinstance(group, ConsumerGroup):
            reason = "session expired" if timer.kind == "consumer" else "did not revoke in time"
            self._heartbeats.expired(group, timer.member, reason)
        elif group is not None:
            match timer.kind:
                case "session":
                    self._rebalance.session_expired(group, timer.member)
                case "pending":
                    self._rebalance.pending_expired(group, timer.member)
                    self._groups.discard_unborn(group)
                case "join":
                    self._rebalance.join_deadline(group)
                case "sync":
                    self._rebalance.sync_deadline(group)

    def _expire(self) -> None:
        for group in self._groups:
            if self._replies.is_available(group.name):
                self._offsets.expire(group)
                self._admin.maybe_forget(group)
        self._replies.arm(EXPIRY, self._replies.settings.offsets_retention_check_ms)

    # Loading

    def load(
        self, records: Iterable[Record], now: float, open_commits: Mapping[int, Iterable[Record]] = NOTHING_OPEN
    ) -> None:
        """Rebuild groups and offsets from the last record of each key; members get a whole session to return.

        ``open_commits``: by producer, the offsets of transactions that have not ended.
        """
        self._replies.now = now
        loaded: set[str] = set()
        for record in records:
            try:
                key = read_key(record.key)
                self._load_one(key, record)
                loaded.add(key.group)
            except (Kafka2011Error, ValueError) as error:
                self._replies.tell(RecordUnreadable(key=record.key, error=str(error)))
        for producer_id, pending in open_commits.items():
            self._offsets.load_pending(producer_id, pending)
        for group in (group for name in loaded if (group := self._groups.get(name)) is not None):
            self._restart_sessions(group)

    def _restart_sessions(self, group: Group) -> None:
        for each in group.members.values():
            self._replies.holdings.hold(group.name, each.id, each.size)
        if isinstance(group, ConsumerGroup):
            self._heartbeats.resume(group)
            return
        for member in group.members.values():
            self._rebalance.restart_session(group, member)

    def _load_one(self, key: Key, record: Record) -> None:
        book, value = self._groups.book(key.group), record.value or b""
        if key.type is GroupRecordType.OFFSET:
            assert key.partition is not None
            book.append({key.partition: (committed := read_offset(value, record.offset))})
            book.settle({key.partition: committed})
        elif key.type is GroupRecordType.GROUP:
            self._groups.put(read_group(key.group, value, book))
        else:
            group = self._groups.consumer(key.group) or ConsumerGroup(key.group, book, state_ms=0)
            self._groups.put(group)
            restore(group, key, value, self._replies.topics)
