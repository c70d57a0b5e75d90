"""A partition at its leader: high watermark, in-sync set, acknowledgements. No I/O.

    appended, fetched, tick, disconnected -> actions: ``ProposeIsr`` to be written to ZooKeeper, ``Raised`` when readers
                                             and waiting producers may look again
    isr_written, isr_refused              -> what became of a proposal; at most one is under way

The high watermark is the smallest end among the *maximal* in-sync set: the set that is stored, together with a
replica about to join. A replica about to leave counts until its leaving is stored: until then it may be elected, and
what was acknowledged without it would be lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from since2011.replication.follower_progress import FollowerProgress
from since2011.replication.partition_state import PartitionState


class ProposeIsr(NamedTuple):
    """Write this in-sync set into the partition's node, if the node still has ``version``."""

    isr: tuple[int, ...]
    version: int
    why: str


class Raised(NamedTuple):
    """The high watermark is now this."""

    high_watermark: int


Action = ProposeIsr | Raised


@dataclass(frozen=True, slots=True)
class SyncRules:
    """When a follower is in sync, and how many must be."""

    lag_s: float = 30.0
    """replica.lag.time.max.ms"""
    grace_s: float = 0.5
    """How long a follower whose connection was closed may take to ask again."""
    min_insync: int = 1
    """min.insync.replicas"""


class Leader:
    """One partition led here, in one epoch. Thread: one."""

    def __init__(
        self,
        me: int,
        state: PartitionState,
        log_end: int,
        high_watermark: int,
        rules: SyncRules,
        now: float,
        *,
        before: Leader | None = None,
    ) -> None:
        self.me, self.state, self.rules = me, state, rules
        self.log_end, self.high_watermark = log_end, high_watermark
        self.epoch_start = log_end
        """Where this epoch begins: who joins the in-sync set must have come so far (KAFKA-7128)."""
        self.pending: ProposeIsr | None = None
        known = {} if before is None else before.followers
        self.followers: dict[int, FollowerProgress] = {}
        for replica in state.replicas:
            if replica != me:
                progress = self.followers[replica] = known.get(replica) or FollowerProgress()
                progress.new_leadership(
                    log_end, now, in_sync=replica in state.isr, led_before=before is not None and replica in known
                )

    # -- what happens ---------------------------------------------------------------------------------------------

    def begin(self, now: float) -> list[Action]:
        """The leadership begins; with no follower in sync everything here is committed at once."""
        return self._raise(now)

    def appended(self, log_end: int, now: float) -> list[Action]:
        """The log has grown to ``log_end``."""
        self.log_end = log_end
        return self._raise(now)

    def fetched(
        self, replica: int, offset: int, log_start: int, now: float, *, broker_is_live: bool = True
    ) -> list[Action]:
        """A follower asks for what follows ``offset``: it has everything before."""
        progress = self.followers.get(replica)
        if progress is None:
            return []
        progress.fetched(offset, log_start, self.log_end, now)
        actions: list[Action] = []
        if broker_is_live and self._may_join(replica, progress):
            actions.append(self._propose((*self.state.isr, replica), f"replica {replica} has caught up"))
        return actions + self._raise(now)

    def disconnected(self, replica: int, now: float) -> None:
        """The connection on which a follower fetched was closed; ``tick`` decides after the time of grace."""
        progress = self.followers.get(replica)
        if progress is not None:
            progress.gone_at = now

    def tick(self, now: float) -> list[Action]:
        """Look for followers that have fallen behind or gone."""
        if self.pending is not None:
            return []
        behind = [replica for replica in self.state.isr if replica != self.me and not self._is_in_sync(replica, now)]
        if not behind:
            return []
        left = tuple(replica for replica in self.state.isr if replica not in behind)
        return [self._propose(left, f"replicas {sorted(behind)} have fallen behind or gone")]

    def isr_written(self, version: int, now: float) -> list[Action]:
        """The proposal is stored, as ``version`` of the node; only now does a smaller set count (KAFKA-13091)."""
        assert self.pending is not None
        for replica in set(self.state.isr) - set(self.pending.isr):
            # Until it has everything again nobody waits for it, even if it had everything a moment ago.
            self.followers[replica].caught_up_at = float("-inf")
        self.state = self.state._replace(isr=self.pending.isr, version=version)
        self.pending = None
        return self._raise(now)

    def isr_refused(self) -> None:
        """The node was not as we thought: somebody else decided. The proposal stays, and with it the larger set, until
        the controller tells what was decided; trying again with the newer version would undo that decision."""

    def isr_not_tried(self) -> None:
        """ZooKeeper did not answer, and the proposal is known not to be stored: it may be made again."""
        self.pending = None

    def decided(self, state: PartitionState, now: float) -> list[Action]:
        """The controller repeats or changes its decision within this epoch; an older version is ignored
        (KAFKA-12686)."""
        if state.version < self.state.version:
            return []
        self.state, self.pending = state, None
        for replica in state.replicas:
            if replica != self.me:
                self.followers.setdefault(replica, FollowerProgress(caught_up_at=float("-inf")))
        self.followers = {replica: self.followers[replica] for replica in state.replicas if replica != self.me}
        return self._raise(now)

    # -- what producers are told ----------------------------------------------------------------------------------

    @property
    def min_insync(self) -> int:
        """How many must be in sync for acks=all; never more than there are replicas."""
        return min(self.rules.min_insync, len(self.state.replicas))

    @property
    def has_enough_replicas(self) -> bool:
        """Whether acks=all may be accepted now (error 19 otherwise)."""
        return len(self.state.isr) >= self.min_insync

    def is_replicated(self, offset: int) -> bool:
        """Whether everything before ``offset`` is held by the whole in-sync set."""
        return self.high_watermark >= offset

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The stored in-sync set, and who is about to join."""
        joining = () if self.pending is None else self.pending.isr
        return (*self.state.isr, *(replica for replica in joining if replica not in self.state.isr))

    # -- rules ----------------------------------------------------------------------------------------------------

    def _is_in_sync(self, replica: int, now: float) -> bool:
        return self.followers[replica].is_in_sync(self.log_end, now, self.rules.lag_s, self.rules.grace_s)

    def _may_join(self, replica: int, progress: FollowerProgress) -> bool:
        if self.pending is not None or replica in self.state.isr:
            return False
        return progress.log_end >= max(self.high_watermark, self.epoch_start)

    def _propose(self, isr: tuple[int, ...], why: str) -> ProposeIsr:
        self.pending = ProposeIsr(isr, self.state.version, why)
        return self.pending

    def _raise(self, now: float) -> list[Action]:
        """Move the high watermark as far as the maximal in-sync set has come; never back.

        A replica that is caught up and about to be let in is waited for as well: else the watermark would run ahead of
        it for ever. Below ``min.insync.replicas`` nothing is committed (KAFKA-15583).
        """
        if len(self.state.isr) < self.min_insync:
            return []
        candidate = self.log_end
        for replica, progress in self.followers.items():
            about_to_join = progress.gone_at is None and now - progress.caught_up_at <= self.rules.lag_s
            if about_to_join or replica in self.maximal_isr:
                candidate = min(candidate, progress.log_end)
        if candidate <= self.high_watermark:
            return []
        self.high_watermark = candidate
        return [Raised(candidate)]
