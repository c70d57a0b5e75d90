"""What a leader knows of one follower: how far it has come, and when it last had everything.

A follower tells how far it has come by the offset it asks for next; there is no other message. "In sync" means that it
had, within ``replica.lag.time.max.ms``, everything that the leader had when it asked before. Comparing with what the
leader has *now* would throw followers out under load, when there is always something newer (KAFKA-4485).
"""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN = -1


@dataclass(slots=True)
class FollowerProgress:
    """One follower as its leader sees it. Times are of the leader's monotonic clock, in seconds."""

    log_end: int = UNKNOWN
    log_start: int = UNKNOWN
    fetched_at: float = 0.0
    leader_end_at_fetch: int = 0
    caught_up_at: float = 0.0
    gone_at: float | None = None
    """When its last connection was closed, if it has not asked since."""

    def fetched(self, offset: int, log_start: int, leader_end: int, now: float) -> None:
        """The follower asks for what follows ``offset``; ``leader_end`` is the leader's own, before it reads."""
        if offset >= leader_end:
            self.caught_up_at = max(self.caught_up_at, now)
        elif offset >= self.leader_end_at_fetch:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.log_end, self.log_start = offset, log_start
        self.fetched_at, self.leader_end_at_fetch = now, leader_end
        self.gone_at = None

    def new_leadership(self, leader_end: int, now: float, *, in_sync: bool, led_before: bool) -> None:
        """A new epoch begins. Whoever led before as well keeps what is known of the ends (resetting it would hold up
        every acknowledgement for a round)."""
        if not led_before:
            self.log_end = self.log_start = UNKNOWN
        self.leader_end_at_fetch = leader_end
        self.fetched_at = self.caught_up_at = now if in_sync else float("-inf")
        self.gone_at = None

    def is_in_sync(self, leader_end: int, now: float, lag_s: float, grace_s: float) -> bool:
        """Whether it may stay in the in-sync set.

        Lag alone never finds a dead follower of an idle partition: it has everything there is. A follower whose
        connection was closed and who has not asked again for ``grace_s`` is gone, whatever it had.
        """
        if self.gone_at is not None and now - self.gone_at >= grace_s:
            return False
        return self.log_end == leader_end or now - self.caught_up_at <= lag_s
