"""Membership by one heartbeat (KIP-848): the broker computes, the member lets go, acknowledges and takes.

See docs/group-protocol.md. The heartbeat thread does all the talking; the application's poll only carries out what
the last answer said, and that is acknowledged at once.
"""

from __future__ import annotations

import uuid
from itertools import groupby

from consumers.group_protocol.coordinator.requests import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from consumers.group_protocol.member.membership import Change, Membership, Partitions, Settings
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.types import TopicPartition
from since2011.client.cluster import Cluster
from since2011.client.errors import MOVED, GroupError
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

HEARTBEAT, COMMIT = 1, 9
_FENCED = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNRELEASED_INSTANCE_ID,
)


class ConsumerMembership(Membership):
    """See the module. Thread: as its base."""

    first_generation = JOIN_EPOCH + 1

    def __init__(self, settings: Settings, cluster: Cluster, clock: Clock = SYSTEM_CLOCK) -> None:
        self._id = str(uuid.uuid4())
        self._epoch = JOIN_EPOCH
        self._target: Partitions | None = None
        self._state_all = self._acknowledge = False
        self._lost = False
        self._fatal: GroupError | None = None
        self._forfeited = False
        super().__init__(settings, cluster, clock)

    def credentials(self) -> tuple[str, int, int]:
        with self.lock:
            return self._id, self._epoch, COMMIT

    def rejoin(self) -> None:
        with self.lock:
            self._state_all = True
        self.wake()

    # In the poll

    def advance(self, wait_s: float) -> Change | None:
        with self.lock:
            self._forfeited = False
            if self._fatal is not None:
                raise self._fatal
            if self._lost:
                self._lost = False
                return Change(revoked=self.owned, lost=True)
            if self._target is None:
                return None
            target = self._target
            if revoked := self.owned - target:
                return Change(revoked=revoked)
            self._target = None
            return Change(assigned=target - self.owned)

    def applied(self, change: Change) -> None:
        with self.lock:
            self.owned = (self.owned - change.revoked) | change.assigned
            self._acknowledge = self._acknowledge or not change.lost
        self.wake()

    # In the heartbeat thread

    def beat(self) -> float:
        with self.lock:
            if not self.wanted or self._fatal or self._forfeited:
                return self.settings.heartbeat_ms / 1000
            epoch, acknowledged = self._epoch, self._acknowledge
            body = self._body()
            self._state_all = self._acknowledge = False
        answer = None
        try:
            answer = self.ask_coordinator(ApiKey.CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, body)
        finally:
            if answer is None:
                with self.lock:
                    # The answer is lost: state everything, to be told everything.
                    self._state_all, self._acknowledge = True, acknowledged
        with self.lock:
            if epoch == self._epoch:
                self._heard(answer)
        return 0.05 if answer.error else max(answer.heartbeat_ms, 1) / 1000

    def _body(self) -> Struct:
        joining = self._epoch == JOIN_EPOCH
        full = joining or self._state_all
        ids = self.topics().ids
        owned = [
            Struct(topic_id=ids[topic], partitions=[p.partition for p in partitions])
            for topic, partitions in groupby(sorted(self.owned), key=lambda p: p.topic)
            if topic in ids
        ]
        return Struct(
            group=self.settings.group,
            member=self._id,
            epoch=self._epoch,
            instance=self.settings.instance,
            rack=None,
            rebalance_ms=self.settings.max_poll_interval_ms if full else -1,
            topics=list(self.wanted) if full else None,
            regex=None,
            assignor=self.settings.assignor if full else None,
            owned=[] if joining else owned if full or self._acknowledge else None,
        )

    def _heard(self, answer: Struct) -> None:
        if answer.error in MOVED:
            self.coordinator_moved()
            self._state_all = True
        elif answer.error in _FENCED:
            self._epoch, self._target = JOIN_EPOCH, None
            self._lost = bool(self.owned)
        elif answer.error:
            self._fatal = GroupError(f"membership in {self.settings.group}", answer.error, answer.error_message or "")
        else:
            self._epoch = answer.epoch
            if answer.assignment is not None:
                self._target = self._named(answer.assignment.topics)

    def _named(self, rows: list[Struct]) -> Partitions | None:
        """The assignment with names for ids; None while a topic is not known here yet."""
        topics = self.topics()
        found = set()
        for row in rows:
            name = topics.name_of(row.topic_id)
            if name is None:
                self._state_all = True  # ask again when the topic is known
                return self._target
            found |= {TopicPartition(name, number) for number in row.partitions}
        return frozenset(found)

    def forfeit(self) -> None:
        with self.lock:
            if self._forfeited or self._epoch <= JOIN_EPOCH:
                return
        self._send_leave(LEAVE_EPOCH)
        with self.lock:
            self._forfeited, self._epoch, self._target = True, JOIN_EPOCH, None
            self._lost = bool(self.owned)

    def say_goodbye(self) -> None:
        if self._epoch > JOIN_EPOCH:
            self._send_leave(LEAVE_EPOCH if self.settings.instance is None else LEAVE_STATIC_EPOCH)

    def _send_leave(self, epoch: int) -> None:
        body = self._body()
        body.epoch, body.rebalance_ms, body.topics, body.owned, body.assignor = epoch, -1, None, None, None
        self.ask_coordinator(ApiKey.CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, body)
