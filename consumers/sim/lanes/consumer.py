"""Modelled KIP-848 members: heartbeat, let go, acknowledge, take.

Spec: modern-group-protocol §12.
"""

from __future__ import annotations

from consumers.group_protocol.coordinator.requests import JOIN_EPOCH, LEAVE_EPOCH, ConsumerGroupHeartbeat
from consumers.group_protocol.coordinator.results import ConsumerGroupHeartbeatResult, Response
from consumers.group_protocol.error_codes import ErrorCode
from consumers.sim.lanes.member import REQUEST_TIMEOUT_S, ModelMember
from consumers.sim.lanes.world import GROUP, REBALANCE_S, TOPIC, GroupWorld
from kafka2011.types import TopicPartition


class ConsumerMember(ModelMember):
    """One request does everything; the application is only needed to let go and to take."""

    def __init__(self, world: GroupWorld, name: str) -> None:
        self._epoch = JOIN_EPOCH
        self._asked_at: float | None = None
        self._target: frozenset[TopicPartition] | None = None
        self._unacknowledged = False
        super().__init__(world, name)

    @property
    def credentials(self) -> tuple[str, int] | None:
        return (self.name, self._epoch) if self._epoch > 0 else None

    def on_poll(self) -> None:
        """Nothing to join: the background thread does it."""

    def on_beat(self) -> None:
        if self._asked_at is None:
            self._send()
        elif self.world.now - self._asked_at >= REQUEST_TIMEOUT_S:
            self._send(full=True)  # the answer is lost: state everything, to be told everything

    def _send(self, *, full: bool = False) -> None:
        self._asked_at = self.world.now
        joining = self._epoch == JOIN_EPOCH
        full = full or joining
        request = ConsumerGroupHeartbeat(
            GROUP,
            self.name,
            self._epoch,
            rebalance_ms=int(REBALANCE_S * 1000) if full else -1,
            topics=(TOPIC,) if full else None,
            owned=tuple(sorted(self.reading)) if full or self._unacknowledged else None,
        )
        self._unacknowledged = False
        epoch = self._epoch
        self.world.send(self, request, lambda response: self._heard(response, epoch))

    def _heard(self, response: Response, epoch: int) -> None:
        assert isinstance(response, ConsumerGroupHeartbeatResult)
        if not self.alive or self._later(lambda: self._heard(response, epoch)):
            return
        self._asked_at = None
        if epoch != self._epoch or self.leaving:
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
        if self._target is None or self._epoch == JOIN_EPOCH:
            return
        target, self._target = self._target, None
        self.stop(sorted(set(self.reading) - target), commit=True)
        self.start(target, self._acknowledge)

    def _acknowledge(self) -> None:
        self._unacknowledged = True
        if self._asked_at is None:
            self._send()

    def _lost(self) -> None:
        """Fenced: whatever we read belongs to others; join again under the same id."""
        self._epoch, self._target = JOIN_EPOCH, None
        self.forget("offsets")
        self.stop(list(self.reading), commit=False)

    def say_goodbye(self) -> None:
        if self._epoch > 0:
            self.world.send(self, ConsumerGroupHeartbeat(GROUP, self.name, LEAVE_EPOCH), lambda _response: None)
