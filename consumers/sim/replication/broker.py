"""One simulated broker with one replica: its disk, its role, and what it does with each message.

The decisions are those of ``since2011.replication``; a changed rule (``rules.py``) is the only difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from consumers.sim.replication.registry import Refused
from since2011.log.epoch_history import EpochHistory
from since2011.replication.follower import AskEpoch, FetchFrom, Follower
from since2011.replication.leader import Action, Leader, ProposeIsr, SyncRules
from since2011.replication.partition_state import NO_LEADER, PartitionState
from since2011.replication.truncation import Cut

if TYPE_CHECKING:
    from consumers.sim.replication.world import World

FETCH_EVERY_S = 0.05
TICK_EVERY_S = 0.5
BATCH = 4


class Record(NamedTuple):
    """A record as it lies in a log: who wrote it, and what."""

    epoch: int
    value: int


class Decision(NamedTuple):
    """LeaderAndIsr: what a controller has decided, for one life of one broker."""

    controller_epoch: int
    broker_epoch: int
    state: PartitionState


class Waiting(NamedTuple):
    """A produce with acks=all that has not been answered."""

    end: int
    value: int
    epoch: int


class MutantLeader(Leader):
    """A leader that may count as older Kafkas did."""

    def __init__(self, world: World, *args: object, **named: object) -> None:
        self._rules = world.rules
        super().__init__(*args, **named)  # type: ignore[arg-type]
        if self._rules.join_at_high_watermark:
            self.epoch_start = 0

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Who is waited for."""
        if self.pending is not None and self._rules.shrink_before_stored:
            return self.pending.isr
        return self.state.isr if self._rules.ignore_joining else super().maximal_isr

    def _raise(self, now: float) -> list[Action]:
        if self._rules.ignore_joining:
            for replica, progress in self.followers.items():
                if replica not in self.state.isr:
                    progress.caught_up_at = float("-inf")
        return super()._raise(now)


class Broker:
    """One broker. Everything that survives a crash is said to be on disk."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self.log: list[Record] = []  # on disk
        self.history = EpochHistory()  # on disk
        self.checkpoint = 0  # on disk: the high watermark, written now and then
        self.n_flushed = 0
        self.up, self.life, self.broker_epoch, self.controller_epoch = False, 0, 0, 0
        self.high_watermark = 0
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self.epoch = -1
        self.waiting: list[Waiting] = []

    @property
    def end(self) -> int:
        """The log end offset."""
        return len(self.log)

    # -- life -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a new life with what is on disk; nobody's leader and nobody's follower until told."""
        self.up = True
        self.life += 1
        self.leader = self.follower = None
        self.epoch, self.controller_epoch = -1, 0
        self.high_watermark = min(self.checkpoint, self.end)
        self.waiting = []
        self.world.every(self, FETCH_EVERY_S, self.ask)
        self.world.every(self, TICK_EVERY_S, self.tick)

    def crash(self, *, power: bool = False) -> None:
        """Die; with ``power`` the machine dies too, and what was not flushed is gone."""
        self.up = False
        self.leader = self.follower = None
        if power:
            self._truncate(min(self.n_flushed, self.end))

    def tick(self) -> None:
        """What is done from time to time."""
        self.checkpoint = self.high_watermark
        self.n_flushed = self.end
        if self.leader is not None:
            self._act(self.leader.tick(self.world.now))

    # -- decisions --------------------------------------------------------------------------------------------

    def decided(self, decision: Decision) -> bool:
        """LeaderAndIsr; True if it is answered."""
        rules, state = self.world.rules, decision.state
        if decision.broker_epoch != self.broker_epoch and not rules.ignore_broker_epoch:
            return True
        if decision.controller_epoch < self.controller_epoch and not rules.obey_old_controllers:
            return True
        self.controller_epoch = decision.controller_epoch
        if state.leader_epoch <= self.epoch and not rules.obey_old_controllers:
            return True
        if state.leader == NO_LEADER:
            return True
        if state.leader_epoch == self.epoch:
            return True
        same_leader = self.follower is not None and self.follower.state.leader == state.leader
        self.epoch = state.leader_epoch
        self.waiting.clear()
        if state.leader == self.number:
            self._lead(state)
        else:
            self._follow(state, same_leader)
        return True

    def _lead(self, state: PartitionState) -> None:
        before, self.follower = self.leader, None
        if not self.world.rules.forget_own_epoch:
            self.history.assign(state.leader_epoch, self.end)
        sync = SyncRules(lag_s=2.0, grace_s=0.3, min_insync=self.world.min_insync)
        self.leader = MutantLeader(
            self.world, self.number, state, self.end, self.high_watermark, sync, self.world.now, before=before
        )
        self._act(self.leader.begin(self.world.now))

    def _follow(self, state: PartitionState, same_leader: bool) -> None:
        rules = self.world.rules
        self.leader, self.follower = None, Follower(self.number, state, self.history)
        if rules.cut_at_high_watermark:
            self.follower._asking = False
            self._truncate(self.high_watermark)
        elif rules.same_leader_same_history and same_leader:
            self.follower._asking = False
        else:
            self._cut(self.follower.begin(self.end, self.high_watermark))

    def _cut(self, cut: Cut | None) -> None:
        if cut is not None:
            self._truncate(cut.offset)

    def _truncate(self, offset: int) -> None:
        self.history.truncate_end(min(offset, self.end))
        del self.log[offset:]
        self.n_flushed = min(self.n_flushed, self.end)
        self.high_watermark = min(self.high_watermark, self.end)

    # -- following --------------------------------------------------------------------------------------------

    def ask(self) -> None:
        """Send the leader the next question."""
        follower = self.follower
        if follower is None:
            return
        request = follower.next_request(self.end)
        self.world.call(self, follower.state.leader, request, self._answered)

    def _answered(self, request: object, answer: object) -> None:
        follower = self.follower
        if follower is None or answer is None:
            return
        if isinstance(request, AskEpoch):
            assert isinstance(answer, tuple)
            if self.world.rules.trust_answered_offset and request.current_epoch == follower.epoch:
                follower._asking = False
                self._truncate(min(answer[1] if answer[1] >= 0 else self.high_watermark, self.end))
            else:
                self._cut(follower.epoch_answered(request, answer, self.end, self.high_watermark))
            return
        assert isinstance(request, FetchFrom)
        if not follower.wants(request, self.end):
            return
        records: list[Record]
        records, watermark = cast("tuple[list[Record], int]", answer)
        for record in records:
            self.history.assign(record.epoch, self.end)
            self.log.append(record)
        self.high_watermark = min(watermark, self.end)

    # -- leading ----------------------------------------------------------------------------------------------

    def serve(self, replica: int, request: object) -> object:
        """Answer a follower; None is a refusal (an epoch that is not this leader's)."""
        leader = self.leader
        assert isinstance(request, AskEpoch | FetchFrom)
        if leader is None or request.current_epoch != leader.state.leader_epoch:
            return None
        if isinstance(request, AskEpoch):
            return self.history.end_offset(request.epoch, self.end)
        if request.offset > self.end:
            return None
        live = replica in self.world.registry.live
        self._act(leader.fetched(replica, request.offset, 0, self.world.now, broker_is_live=live))
        return self.log[request.offset : request.offset + BATCH], leader.high_watermark

    def hung_up(self, replica: int) -> None:
        """A follower's connection was closed."""
        if self.leader is not None:
            self.leader.disconnected(replica, self.world.now)

    def produce(self, value: int) -> None:
        """A produce with acks=all."""
        leader = self.leader
        if leader is None or not leader.has_enough_replicas:
            return
        self.log.append(Record(leader.state.leader_epoch, value))
        self.world.checker.wrote(self.number, leader.state.leader_epoch)
        self.waiting.append(Waiting(self.end, value, leader.state.leader_epoch))
        self._act(leader.appended(self.end, self.world.now))
        self._acknowledge()

    def _acknowledge(self) -> None:
        leader = self.leader
        if leader is None:
            return
        # At the request's time-out (error 20 or 7) nothing more is promised; here none comes.
        ready = [one for one in self.waiting if leader.is_replicated(one.end)]
        for one in ready:
            self.waiting.remove(one)
            if len(leader.maximal_isr) >= leader.min_insync:
                self.world.checker.acknowledged(one.end - 1, one.value)

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, ProposeIsr):
                self.world.propose(self, action)
            else:
                self.high_watermark = action.high_watermark
                self.world.checker.raised(self)
                self._acknowledge()
        if self.leader is not None and self.world.rules.expose_unreplicated:
            self.world.checker.exposed(self, self.end)

    def write_isr(self, action: ProposeIsr, epoch: int) -> int | None:
        """Write the in-sync set to the registry; the node's version then, None if it was refused."""
        leader, registry = self.leader, self.world.registry
        if leader is None or leader.state.leader_epoch != epoch or leader.pending != action:
            return None
        assert registry.state is not None
        version = registry.state.version if self.world.rules.retry_with_new_version else action.version
        try:
            return registry.write(leader.state._replace(isr=action.isr), version).version
        except Refused:
            leader.isr_refused()
            return None

    def isr_written(self, action: ProposeIsr, epoch: int, version: int) -> None:
        """The registry has answered."""
        leader = self.leader
        if leader is None or leader.state.leader_epoch != epoch or leader.pending != action:
            return
        actions = leader.isr_written(version, self.world.now)
        self._act([] if self.world.rules.no_raise_after_shrink else actions)
