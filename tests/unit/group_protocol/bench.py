"""A coordinator on a bench: virtual time, a log that is durable at once or on demand, members in short words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TypeVar
from uuid import UUID

from consumers.group_protocol.coordinator.holdings import GROUP_OVERHEAD, MEMBER_OVERHEAD, OFFSET_OVERHEAD
from consumers.group_protocol.coordinator.requests import (
    ConsumerGroupHeartbeat,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    MemberAssignment,
    OffsetCommit,
    OffsetFetch,
    OffsetToCommit,
    Protocol,
    Request,
    SyncGroup,
    Token,
)
from consumers.group_protocol.coordinator.results import (
    ConsumerGroupHeartbeatResult,
    HeartbeatResult,
    JoinGroupResult,
    LeaveGroupResult,
    OffsetCommitResult,
    OffsetFetchResult,
    Reply,
    Response,
    SyncGroupResult,
)
from consumers.group_protocol.coordinator.service import GroupCoordinator
from consumers.group_protocol.coordinator.settings import GroupSettings, InTransaction, LogPosition, Record
from kafka2011.clock import ManualClock
from kafka2011.errors import LogFull
from kafka2011.events import Journal
from kafka2011.types import TopicPartition
from since2011.topics.cluster import topic_id
from since2011.wire.error_codes import ErrorCode

QUICK = GroupSettings(initial_rebalance_delay_ms=0)
RANGE = (Protocol("range", b"wants t"),)
R = TypeVar("R")


class MemoryLog:
    """Keeps records; durable at once, or only when the bench says so."""

    def __init__(self) -> None:
        self.records: dict[bytes, bytes | None] = {}
        self.deferred = False
        self.full = False
        self.available = True
        self.end = 0

    def append(
        self, group: str, records: Sequence[Record], transaction: InTransaction | None = None
    ) -> LogPosition | None:
        if self.full:
            raise LogFull("no room on the bench")
        self.records.update({record.key: record.value for record in records})
        self.end += 1
        return LogPosition(0, self.end) if self.deferred else None

    def is_available(self, group: str) -> bool:
        return self.available

    def live(self) -> list[Record]:
        return [Record(key, value) for key, value in self.records.items() if value is not None]


class SomeTopics(dict[str, int]):
    def partition_count(self, topic: str) -> int | None:
        return self.get(topic)

    def topic_id(self, topic: str) -> UUID:
        return topic_id(topic)

    def topic_name(self, topic_id_: UUID) -> str | None:
        return next((topic for topic in self if topic_id(topic) == topic_id_), None)


class Bench:
    def __init__(self, settings: GroupSettings = QUICK, log: MemoryLog | None = None) -> None:
        self.log = log or MemoryLog()
        self.topics = SomeTopics(t=4, u=2)
        self.clock = ManualClock()
        self.journal = Journal(clock=self.clock)
        ids = count(1)
        self.coordinator = GroupCoordinator(
            settings,
            self.log,
            self.topics,
            clock=self.clock,
            journal=self.journal,
            new_id=lambda: f"{next(ids):03d}",
        )
        self.answers: dict[Token, Response] = {}
        self._tokens = count(1)

    def send(self, request: Request) -> int:
        token = next(self._tokens)
        self.keep(self.coordinator.handle(token, request, self.clock.monotonic()))
        self.check_holdings()
        return token

    def drop(self, token: int) -> None:
        """The connection that waits for this answer ends."""
        self.keep(self.coordinator.drop(token, self.clock.monotonic()))
        self.check_holdings()

    def check_holdings(self) -> None:
        """What is counted is what is kept: of groups, members, ids handed out, and offsets."""
        kept, offsets = 0, 0
        for group in self.coordinator.groups().values():
            pending = getattr(group, "pending", ())
            kept += GROUP_OVERHEAD + len(group.name) + sum(member.size for member in group.members.values())
            kept += sum(MEMBER_OVERHEAD + len(each) for each in pending)
            offsets += sum(OFFSET_OVERHEAD + 2 * len(each.metadata) for each in group.book.appended.values())
        holdings = self.coordinator._replies.holdings
        assert (holdings.total, holdings.offsets) == (kept, offsets)

    def ask(self, request: Request, kind: type[R]) -> R:
        """Send a request that must be answered at once."""
        return self.answer(self.send(request), kind)

    def answer(self, token: int, kind: type[R]) -> R:
        response = self.answers.pop(token)
        assert isinstance(response, kind)
        return response

    def is_parked(self, token: int) -> bool:
        return token not in self.answers

    def pass_time(self, seconds: float) -> None:
        """Advance to each deadline on the way."""
        end = self.clock.monotonic() + seconds
        while (deadline := self.coordinator.next_deadline()) is not None and deadline <= end:
            self.clock.advance(max(0.0, deadline - self.clock.monotonic()))
            self.keep(self.coordinator.tick(self.clock.monotonic()))
            self.check_holdings()
        self.clock.advance(end - self.clock.monotonic())

    def settle(self) -> None:
        """Let what is due now happen."""
        self.pass_time(0)

    def flush(self, upto: int | None = None) -> None:
        position = LogPosition(0, self.log.end if upto is None else upto)
        self.keep(self.coordinator.flushed(position, self.clock.monotonic()))

    def keep(self, replies: list[Reply]) -> None:
        for reply in replies:
            assert reply.token not in self.answers, "answered twice"
            self.answers[reply.token] = reply.response

    def restarted(self, settings: GroupSettings = QUICK) -> Bench:
        """A new coordinator that reads what this one logged."""
        bench = Bench(settings, self.log)
        bench.coordinator.load(self.log.live(), bench.clock.monotonic())
        bench.check_holdings()
        return bench

    # Members in short words

    def send_join(
        self,
        member: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        protocols: tuple[Protocol, ...] = RANGE,
        version: int = 5,
        session_ms: int = 10_000,
        rebalance_ms: int = 30_000,
        protocol_type: str = "consumer",
        client: str = "c",
    ) -> int:
        return self.send(
            JoinGroup(
                group, session_ms, rebalance_ms, member, protocol_type, protocols, instance, client, "/h", version
            )
        )

    def new_id(self, **how: object) -> str:
        """The first half of the handshake."""
        result = self.answer(self.send_join(**how), JoinGroupResult)  # type: ignore[arg-type]
        assert result.error is ErrorCode.MEMBER_ID_REQUIRED
        return result.member

    def joined(self, token: int) -> JoinGroupResult:
        return self.answer(token, JoinGroupResult)

    def sync(self, member: str, generation: int, shares: dict[str, bytes] | None = None, **how: object) -> int:
        given = tuple(MemberAssignment(each, share) for each, share in (shares or {}).items())
        return self.send(SyncGroup("g", generation, member, given, **how))  # type: ignore[arg-type]

    def synced(self, token: int) -> SyncGroupResult:
        return self.answer(token, SyncGroupResult)

    def heartbeat(self, member: str, generation: int, instance: str | None = None) -> ErrorCode:
        return self.ask(Heartbeat("g", generation, member, instance), HeartbeatResult).error

    def leave(self, *members: str, instance: str | None = None) -> LeaveGroupResult:
        leaving = tuple(LeavingMember(member, instance) for member in members)
        return self.ask(LeaveGroup("g", leaving), LeaveGroupResult)

    def send_commit(
        self,
        member: str = "",
        generation: int = -1,
        offset: int = 7,
        *,
        version: int = 7,
        partition: int = 0,
        **how: object,
    ) -> int:
        offsets = (OffsetToCommit("t", partition, offset),)
        return self.send(OffsetCommit("g", generation, member, offsets, version=version, **how))  # type: ignore[arg-type]

    def commit(self, *args: object, **how: object) -> ErrorCode:
        token = self.send_commit(*args, **how)  # type: ignore[arg-type]
        return self.answer(token, OffsetCommitResult).partitions[0].error

    def committed(self, partition: int = 0, group: str = "g") -> int:
        result = self.ask(OffsetFetch(group, (TopicPartition("t", partition),)), OffsetFetchResult)
        assert result.error is ErrorCode.NONE
        return result.offsets[0].offset

    def stable(self, *names: str, **how: object) -> list[str]:
        """A stable group of new members; the first leads. Each is assigned its own id."""
        ids = [self.new_id(client=name, **how) for name in names]
        tokens = [self.send_join(member, **how) for member in ids]  # type: ignore[arg-type]
        self.settle()
        generation = self.joined(tokens[0]).generation
        for token in tokens[1:]:
            assert self.joined(token).generation == generation
        syncs = [self.sync(member, generation) for member in ids[1:]]
        syncs.append(self.sync(ids[0], generation, {member: member.encode() for member in ids}))
        for token in syncs:
            assert self.synced(token).error is ErrorCode.NONE
        return ids

    def consumer(self, member: str, epoch: int = 0, **how: object) -> ConsumerGroupHeartbeatResult:
        """A KIP-848 heartbeat; joining states everything."""
        if epoch == 0:
            how = {"rebalance_ms": 5_000, "topics": ("t",), "owned": ()} | how
        request = ConsumerGroupHeartbeat("g", member, epoch, **how)  # type: ignore[arg-type]
        return self.ask(request, ConsumerGroupHeartbeatResult)

    @property
    def state(self) -> str:
        group = self.coordinator.groups()["g"]
        return group.state.value if group.kind == "classic" else group.state_name  # type: ignore[union-attr]
