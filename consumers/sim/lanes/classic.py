"""Modelled classic members: eager ones give up everything, cooperative ones only what moves.

Spec: modern-group-protocol §3.8, §8.
"""

from __future__ import annotations

from consumers.group_protocol.assignors import Candidate, assignor
from consumers.group_protocol.coordinator.requests import (
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    MemberAssignment,
    Protocol,
    SyncGroup,
)
from consumers.group_protocol.coordinator.results import HeartbeatResult, JoinGroupResult, Response, SyncGroupResult
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.subscription import Subscription, decode_assignment, encode_assignment
from consumers.sim.lanes.member import ModelMember
from consumers.sim.lanes.world import GROUP, REBALANCE_S, TOPIC, GroupWorld
from consumers.sim.scenario import SESSION_S
from kafka2011.types import TopicPartition

_LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)


class ClassicMember(ModelMember):
    """Join, sync, heartbeat."""

    def __init__(self, world: GroupWorld, name: str, rule: str) -> None:
        self._assignor = assignor(rule)
        self._id, self._generation = "", -1
        self._must_join = True
        self._joining = False
        self._assigned_of: int | None = None
        """As leader: how many partitions there were when they were last shared out."""
        super().__init__(world, name)

    @property
    def credentials(self) -> tuple[str, int] | None:
        return (self._id, self._generation) if self._generation >= 0 else None

    def on_poll(self) -> None:
        if self._must_join and not self._joining:
            if not self._assignor.is_cooperative:
                self.stop(list(self.reading), commit=True)
            self._join()

    def on_beat(self) -> None:
        if self._assigned_of not in (None, self.world.partition_count(TOPIC)):
            self._must_join = True  # the leader joins again when topics grow
        if self._generation >= 0 and not self._joining:
            generation = self._generation
            request = Heartbeat(GROUP, generation, self._id)
            self.world.send(self, request, lambda response: self._beaten(response, generation))

    def _beaten(self, response: Response, generation: int) -> None:
        assert isinstance(response, HeartbeatResult)
        if not self.alive or self._later(lambda: self._beaten(response, generation)):
            return
        if generation == self._generation and response.error:
            self._learn(response.error)

    def _learn(self, error: ErrorCode) -> None:
        """A rebalance began, or we are no longer in the group: then what we read is lost to us, and not committed."""
        self._must_join = True
        if error in _LOST:
            self._generation = -1
            self._id = "" if error is ErrorCode.UNKNOWN_MEMBER_ID else self._id
            self.stop(list(self.reading), commit=False)

    def say_goodbye(self) -> None:
        if self._id:
            self.world.send(self, LeaveGroup(GROUP, (LeavingMember(self._id),)), lambda _response: None)

    # Join and sync

    def _join(self) -> None:
        self._joining, self._must_join = True, False
        owned = tuple(sorted(self.reading)) if self._assignor.is_cooperative else ()
        metadata = Subscription((TOPIC,), b"", owned, self._generation if owned else -1).encode()
        request = JoinGroup(
            GROUP,
            int(SESSION_S * 1000),
            int(REBALANCE_S * 1000),
            self._id,
            "consumer",
            (Protocol(self._assignor.name, metadata),),
            client_id=self.name,
        )
        self.ask("join", request, self._joined, patience_s=REBALANCE_S + SESSION_S)

    def _joined(self, response: Response) -> None:
        assert isinstance(response, JoinGroupResult)
        if response.error is ErrorCode.MEMBER_ID_REQUIRED:
            self._id = response.member
            self._join()
            return
        if response.error:
            self._joining = False
            self._learn(response.error)
            return
        self._id, self._generation = response.member, response.generation
        self._assigned_of = None
        given = self._assign(response) if response.leader == response.member else ()
        self.ask("sync", SyncGroup(GROUP, self._generation, self._id, given), self._synced)

    def _assign(self, joined: JoinGroupResult) -> tuple[MemberAssignment, ...]:
        candidates = {}
        for each in joined.members:
            wish = Subscription.decode(each.metadata)
            candidates[each.member] = Candidate(frozenset(wish.topics), wish.owned, wish.generation, each.instance)
        self._assigned_of = self.world.partition_count(TOPIC) or 0
        shares = self._assignor.assign({TOPIC: self._assigned_of}, candidates)
        return tuple(MemberAssignment(member, encode_assignment(share)) for member, share in shares.items())

    def _synced(self, response: Response) -> None:
        assert isinstance(response, SyncGroupResult)
        self._joining = False
        if response.error:
            self._learn(response.error)
            return
        share = set(decode_assignment(response.assignment))
        revoked = set(self.reading) - share
        if revoked:
            self.stop(sorted(revoked), commit=True)
            self._must_join = True  # the second round: what we let go can now be given to others
        self._started(share)

    def _started(self, share: set[TopicPartition]) -> None:
        self.start(share)
        if self._must_join:
            self.on_poll()


class EagerMember(ClassicMember):
    """Range assignor, everything revoked at every rebalance."""

    def __init__(self, world: GroupWorld, name: str) -> None:
        super().__init__(world, name, "range")


class CooperativeMember(ClassicMember):
    """Cooperative-sticky: reading goes on through a rebalance (KIP-429)."""

    def __init__(self, world: GroupWorld, name: str) -> None:
        super().__init__(world, name, "cooperative-sticky")
