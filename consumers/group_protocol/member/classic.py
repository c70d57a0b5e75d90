"""Membership by join and sync: eager or cooperative, as the assignor says.

See docs/group-protocol.md.

    OUT -> JOINING: in a poll; an eager member has let go of everything before
    JOINING -> SYNCING: the join phase ended; the leader has shared out
    SYNCING -> IN: the share is here; a cooperative member that had to let go of something joins once more
    IN -> OUT: 27 on a heartbeat, or the subscription changed
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from consumers.group_protocol.assignors import Candidate, assignor
from consumers.group_protocol.member.membership import Change, Membership, Partitions, Settings
from consumers.group_protocol.subscription import (
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    encode_assignment,
    sticky_user_data,
)
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import ConnectionFailed, RequestTimedOut
from since2011.client.cluster import Cluster, check
from since2011.client.connection import ModernConnection
from since2011.client.errors import MOVED, REJOIN
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

JOIN, SYNC, BEAT, LEAVE, COMMIT = 5, 3, 3, 3, 7
"""Versions: the lowest that know static members."""
_RETRY_S = 0.1


class Phase(Enum):
    OUT = auto()
    JOINING = auto()
    SYNCING = auto()
    IN = auto()


class ClassicMembership(Membership):
    """See the module. Thread: as its base."""

    first_generation = 0

    def __init__(self, settings: Settings, cluster: Cluster, clock: Clock = SYSTEM_CLOCK) -> None:
        self._assignor = assignor(settings.assignor)
        self._phase = Phase.OUT
        self._id, self._generation = "", -1
        self._must_join, self._lost = True, False
        self._let_go = True
        self._counts: Mapping[str, int] | None = None
        self._control: ModernConnection | None = None
        self._not_before = 0.0
        super().__init__(settings, cluster, clock)

    def credentials(self) -> tuple[str, int, int]:
        with self.lock:
            return self._id, self._generation, COMMIT

    def rejoin(self) -> None:
        with self.lock:
            self._must_join = True

    # In the poll

    def advance(self, wait_s: float) -> Change | None:
        try:
            return self._advance(wait_s)
        except (ConnectionFailed, RequestTimedOut):
            self._start_over()
            return None

    def _advance(self, wait_s: float) -> Change | None:
        with self.lock:
            if self._lost:
                self._lost = False
                self._phase, self._let_go = Phase.OUT, True
                return Change(revoked=self.owned, lost=True)
            if self._phase is Phase.IN and (self._must_join or self._has_grown()):
                self._phase, self._must_join = Phase.OUT, False
                self._let_go = self._assignor.is_cooperative
            if self._phase is Phase.OUT and not self._let_go and self.owned:
                return Change(revoked=self.owned)
        if self._phase is Phase.OUT and self.wanted and self.clock.monotonic() >= self._not_before:
            self._send_join()
        if self._phase is Phase.JOINING:
            self._take_join(wait_s)
        return self._take_sync(wait_s) if self._phase is Phase.SYNCING else None

    def applied(self, change: Change) -> None:
        with self.lock:
            self.owned = (self.owned - change.revoked) | change.assigned
            if self._phase is Phase.OUT:
                self._let_go = True

    def _has_grown(self) -> bool:
        """The leader joins again when there are more partitions than it shared out."""
        return self._counts is not None and self._counts != self.topics().counts

    def _send_join(self) -> None:
        owned = tuple(sorted(self.owned)) if self._assignor.is_cooperative else ()
        user_data = sticky_user_data(self._remembered, self._generation) if self._assignor.name == "sticky" else b""
        metadata = Subscription(self.wanted, user_data, owned, self._generation).encode(
            1 if self._assignor.name == "sticky" else 3
        )
        self._connect().send(
            ApiKey.JOIN_GROUP,
            JOIN,
            Struct(
                group=self.settings.group,
                session_ms=self.settings.session_ms,
                rebalance_ms=self.settings.max_poll_interval_ms,
                member=self._id,
                instance=self.settings.instance,
                type=PROTOCOL_TYPE,
                protocols=[Struct(name=self._assignor.name, metadata=metadata)],
            ),
        )
        with self.lock:
            self._phase, self._must_join = Phase.JOINING, False

    _remembered: Partitions = frozenset()
    """The share of the last generation, for the eager sticky assignor."""

    def _take_join(self, wait_s: float) -> None:
        answer = self._connect().receive(wait_s)
        if answer is None:
            return
        if answer.error == ErrorCode.MEMBER_ID_REQUIRED:
            self._id = answer.member
            self._send_join()
            return
        if self._failed(answer.error, "joining"):
            return
        with self.lock:
            self._id, self._generation = answer.member, answer.generation
        leads = answer.leader == answer.member
        given = self._share_out(answer.members) if leads else []
        if not leads:
            self._counts = None
        body = Struct(
            group=self.settings.group,
            generation=self._generation,
            member=self._id,
            instance=self.settings.instance,
            assignments=given,
        )
        self._connect().send(ApiKey.SYNC_GROUP, SYNC, body)
        self._phase = Phase.SYNCING

    def _share_out(self, members: list[Struct]) -> list[Struct]:
        candidates = {}
        for each in members:
            wish = Subscription.decode(each.metadata)
            candidates[each.member] = Candidate(frozenset(wish.topics), wish.owned, wish.generation, each.instance)
        topics = {topic for candidate in candidates.values() for topic in candidate.topics}
        found = self.cluster.topics(topics)
        self._counts = self.topics().counts
        shares = self._assignor.assign(found.counts, candidates)
        return [Struct(member=member, assignment=encode_assignment(share)) for member, share in shares.items()]

    def _take_sync(self, wait_s: float) -> Change | None:
        answer = self._connect().receive(wait_s)
        if answer is None or self._failed(answer.error, "syncing"):
            return None
        share = frozenset(decode_assignment(answer.assignment))
        with self.lock:
            self._phase, self._remembered = Phase.IN, share
            revoked = self.owned - share
            self._must_join = self._must_join or bool(revoked)
        return Change(revoked=revoked, assigned=share - self.owned)

    def _failed(self, error: int, what: str) -> bool:
        """Deal with a refusal: begin again, or give up loudly."""
        if not error:
            return False
        if error in MOVED:
            self._start_over()
        elif error in REJOIN:
            with self.lock:
                self._refused(ErrorCode(error))
                self._phase = Phase.OUT
                self._not_before = self.clock.monotonic() + _RETRY_S
        else:
            check(f"{what} group {self.settings.group}", error, "change the member's settings, then start it again")
        return True

    def _refused(self, error: ErrorCode) -> None:
        self._must_join = True
        if error is not ErrorCode.REBALANCE_IN_PROGRESS:
            self._generation = -1
            self._lost = bool(self.owned)
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._id = ""

    def _start_over(self) -> None:
        control, self._control = self._control, None
        if control is not None:
            control.close()
        with self.lock:
            if self._phase is not Phase.IN:
                self._phase = Phase.OUT
            self._not_before = self.clock.monotonic() + _RETRY_S

    def _connect(self) -> ModernConnection:
        if self._control is None:
            self._control = self.cluster.coordinator(self.settings.group)
        return self._control

    def say_goodbye(self) -> None:
        # A static member says nothing: it means to come back (§7).
        if self._id and self.settings.instance is None:
            self._send_leave()
        if self._control is not None:
            self._control.close()

    def _send_leave(self) -> None:
        members = [Struct(member=self._id, instance=self.settings.instance)]
        self.ask_coordinator(ApiKey.LEAVE_GROUP, LEAVE, Struct(group=self.settings.group, members=members))

    # In the heartbeat thread

    def beat(self) -> float:
        with self.lock:
            member, generation = self._id, self._generation
            beats = self._phase in (Phase.IN, Phase.SYNCING) or (self._phase is Phase.OUT and generation >= 0)
        if beats and generation >= 0:
            body = Struct(
                group=self.settings.group, generation=generation, member=member, instance=self.settings.instance
            )
            error = self.ask_coordinator(ApiKey.HEARTBEAT, BEAT, body).error
            if error in MOVED:
                self.coordinator_moved()
            elif error:
                with self.lock:
                    # Whoever is joining again already has nothing to learn from the answer to an older heartbeat.
                    is_news = error != ErrorCode.REBALANCE_IN_PROGRESS or self._phase is Phase.IN
                    if generation == self._generation and is_news:
                        self._refused(ErrorCode(error))
        return self.settings.heartbeat_ms / 1000

    def forfeit(self) -> None:
        with self.lock:
            if self._generation < 0:
                return
            member = self._id
        self._send_leave()
        with self.lock:
            if member == self._id:
                self._refused(ErrorCode.UNKNOWN_MEMBER_ID)
