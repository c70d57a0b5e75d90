"""Modelled classic members: eager ones give up everything, cooperative ones only what moves.

See docs/group-protocol.md.
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
from consumers.group_protocol.subscription import Subscription, decode_assignment, encode_assignment
from consumers.sim.compare.member import ModelMember
from consumers.sim.compare.world import GROUP, REBALANCE_S, TOPIC, GroupWorld
from consumers.sim.scenario import SESSION_S
from kafka2011.types import TopicPartition
from since2011.wire.error_codes import ErrorCode

_LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)


class ClassicMember(ModelMember):
    """Join, sync and heartbeat in the background; letting go and taking need the application."""

    def __init__(self, world: GroupWorld, name: str, rule: str) -> None:
        self._assignor = assignor(rule)
        self._id, self._generation = "", -1
        self._rebalancing = self._again = False
        self._parked = False
        """A join waits for its answer: the coordinator wants no heartbeat."""
        self._shared_out: int | None = None
        """As leader: how many partitions there were when they were last shared out."""
        super().__init__(world, name)
        world.at(0.0, self._rebalance)

    @property
    def is_settled(self) -> bool:
        return not self._rebalancing

    @property
    def credentials(self) -> tuple[str, int] | None:
        return (self._id, self._generation) if self._generation >= 0 else None

    def on_beat(self) -> None:
        if self._shared_out not in (None, self.world.partition_count(TOPIC)):
            self._rebalance()  # the leader joins again when topics grow
        if self._generation >= 0 and not self._parked:
            generation = self._generation
            request = Heartbeat(GROUP, generation, self._id)
            self.world.send(self, request, lambda response: self._heard(response, generation))

    def _heard(self, response: Response | None, generation: int) -> None:
        if not self.alive or self._later(lambda: self._heard(response, generation)):
            return
        if isinstance(response, HeartbeatResult) and generation == self._generation and response.error:
            self._learn(response.error)

    def _learn(self, error: ErrorCode) -> None:
        """A rebalance began, or we are no longer in the group: then nothing we read is ours any more."""
        if error in _LOST:
            self._generation = -1
            self._id = "" if error is ErrorCode.UNKNOWN_MEMBER_ID else self._id
            self._rebalancing = False
            self.lose()
        self._rebalance()

    def say_goodbye(self) -> None:
        if self._id:
            self.world.send(self, LeaveGroup(GROUP, (LeavingMember(self._id),)), lambda _response: None)

    # One rebalance

    def _rebalance(self) -> None:
        if self._rebalancing:
            self._again = True
        elif not self.leaving:
            self._rebalancing, self._again = True, False
            if self._assignor.is_cooperative:
                self._join()
            else:
                self.in_poll(lambda: self.stop(list(self.owned), self._join))

    def _join(self) -> None:
        self._parked = True
        owned = tuple(sorted(self.owned)) if self._assignor.is_cooperative else ()
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
        self.ask("join", request, self._joined)

    def _joined(self, response: Response) -> None:
        assert isinstance(response, JoinGroupResult)
        self._parked = False
        if response.error is ErrorCode.MEMBER_ID_REQUIRED:
            self._id = response.member
            self._join()
        elif response.error:
            self._rebalancing = False
            self._learn(response.error)
        else:
            self._id, self._generation = response.member, response.generation
            self._shared_out = None
            given = self._assign(response) if response.leader == response.member else ()
            self.ask("join", SyncGroup(GROUP, self._generation, self._id, given), self._synced)

    def _assign(self, joined: JoinGroupResult) -> tuple[MemberAssignment, ...]:
        candidates = {}
        for each in joined.members:
            wish = Subscription.decode(each.metadata)
            candidates[each.member] = Candidate(frozenset(wish.topics), wish.owned, wish.generation, each.instance)
        self._shared_out = self.world.partition_count(TOPIC) or 0
        shares = self._assignor.assign({TOPIC: self._shared_out}, candidates)
        return tuple(MemberAssignment(member, encode_assignment(share)) for member, share in shares.items())

    def _synced(self, response: Response) -> None:
        assert isinstance(response, SyncGroupResult)
        if response.error:
            self._rebalancing = False
            self._learn(response.error)
            return
        share, generation = set(decode_assignment(response.assignment)), self._generation
        self.in_poll(lambda: self._let_go(share, generation))

    def _let_go(self, share: set[TopicPartition], generation: int) -> None:
        if generation == self._generation:
            revoked = sorted(self.owned - share)
            # The second round: what we let go can be given to others then.
            self._again = self._again or bool(revoked)
            self.stop(revoked, lambda: self._take(share, generation))

    def _take(self, share: set[TopicPartition], generation: int) -> None:
        if generation == self._generation:
            self._rebalancing = False
            self.start(share)
            if self._again:
                self._rebalance()


class EagerMember(ClassicMember):
    """Range assignor, everything revoked at every rebalance."""

    def __init__(self, world: GroupWorld, name: str) -> None:
        super().__init__(world, name, "range")


class CooperativeMember(ClassicMember):
    """Cooperative-sticky: reading goes on through a rebalance (KIP-429)."""

    def __init__(self, world: GroupWorld, name: str) -> None:
        super().__init__(world, name, "cooperative-sticky")
