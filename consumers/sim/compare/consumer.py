"""Modelled KIP-848 members: heartbeat, let go, acknowledge, take.

See docs/group-protocol.md.
"""

from __future__ import annotations

from consumers.group_protocol.coordinator.requests import JOIN_EPOCH, LEAVE_EPOCH, ConsumerGroupHeartbeat
from consumers.group_protocol.coordinator.results import ConsumerGroupHeartbeatResult, Response
from consumers.sim.compare.member import ModelMember
from consumers.sim.compare.world import GROUP, REBALANCE_S, TOPIC, GroupWorld
from kafka2011.types import TopicPartition
from since2011.wire.error_codes import ErrorCode


class ConsumerMember(ModelMember):
    """One request does everything; the application is only needed to let go and to take."""

    def __init__(self, world: GroupWorld, name: str) -> None:
        self._epoch = JOIN_EPOCH
        self._lives = 1
        self._asking = self._reconciling = False
        self._full = self._unacknowledged = False
        self._target: frozenset[TopicPartition] | None = None
        super().__init__(world, name)

    @property
    def credentials(self) -> tuple[str, int] | None:
        return (self.name, self._epoch) if self._epoch > 0 else None

    @property
    def is_settled(self) -> bool:
        return not self._reconciling and self._target is None

    def on_beat(self) -> None:
        if not self._asking:
            self._send()

    def _send(self) -> None:
        full = self._full or self._epoch == JOIN_EPOCH
        request = ConsumerGroupHeartbeat(
            GROUP,
            self.name,
            self._epoch,
            rebalance_ms=int(REBALANCE_S * 1000) if full else -1,
            topics=(TOPIC,) if full else None,
            owned=tuple(sorted(self.owned)) if full or self._unacknowledged else None,
        )
        self._asking, self._full, self._unacknowledged = True, False, False
        epoch = self._epoch
        self.world.send(self, request, lambda response: self._heard(response, epoch))

    def _heard(self, response: Response | None, epoch: int) -> None:
        if not self.alive or self._later(lambda: self._heard(response, epoch)):
            return
        self._asking = False
        if not isinstance(response, ConsumerGroupHeartbeatResult):
            self._full = True  # the answer is lost: state everything, to be told everything
            return
        if epoch != self._epoch:
            return
        if response.error:
            if response.error is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._lost()
            return
        self._epoch = response.epoch
        if response.assignment is not None:
            self._target = frozenset(response.assignment)
            self.in_poll(self._reconcile)

    def _reconcile(self) -> None:
        if self._target is None or self._reconciling:
            return
        target, self._target = self._target, None
        self._reconciling = True
        life = self._lives

        def take() -> None:
            if self._lives == life:
                self.start(target, self._acknowledge)

        self.stop(sorted(self.owned - target), take)

    def _acknowledge(self) -> None:
        self._reconciling, self._unacknowledged = False, True
        if not self._asking:
            self._send()
        self._reconcile()

    def _lost(self) -> None:
        """Fenced: whatever we read belongs to others; join again under the same id."""
        self._epoch, self._target, self._reconciling = JOIN_EPOCH, None, False
        self._lives += 1
        self.lose()

    def say_goodbye(self) -> None:
        if self._epoch > 0:
            self.world.send(self, ConsumerGroupHeartbeat(GROUP, self.name, LEAVE_EPOCH), lambda _response: None)
