"""A member that leads: it answers its followers, moves the watermarks, and keeps the in-sync set.

What is decided is ``leadership.Leadership``'s; here it meets logs, connections and timers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from twisted.internet.defer import Deferred

from kafka2011.broker.handlers import Answer
from kafka2011.broker.reactor import DelayedCall
from kafka2011.errors import NotServing
from kafka2011.log.log import Log
from kafka2011.types import TopicPartition
from kafka2011.wire.file_range import FileRange
from since2011.replication.leader import ProposeIsr
from since2011.standby.copying import offsets_told, part_for
from since2011.standby.epochs import Epochs
from since2011.standby.events import InSyncChanged, MemberGone
from since2011.standby.follow import FollowRequest, Part, encode_head
from since2011.standby.in_sync import MEMBERS
from since2011.standby.leadership import Leadership, Step
from since2011.standby.member_log import MemberLog

if TYPE_CHECKING:
    from kafka2011.broker.protocol import BrokerProtocol
    from kafka2011.broker.service import Broker
    from since2011.standby.watermarks import Watermarks

MOST_PER_PARTITION = 1 << 20
MOST_FILES = 256
"""Files one answer holds open."""


@dataclass(slots=True, eq=False)
class _Parked:
    """A follower that waits for something to be told."""

    request: FollowRequest
    answer: Deferred[Answer]
    timer: DelayedCall | None = field(default=None)


class Lead:
    """One epoch of this member's leadership. Thread: reactor."""

    def __init__(
        self,
        broker: Broker,
        leadership: Leadership,
        epochs: Epochs,
        watermarks: Watermarks,
        propose: Callable[[ProposeIsr], None],
    ) -> None:
        self.leadership, self._broker, self._epochs = leadership, broker, epochs
        self._watermarks, self._propose = watermarks, propose
        self._logs: dict[TopicPartition, MemberLog] = {}
        self._parked: dict[str, _Parked] = {}
        self._clients: dict[str, BrokerProtocol] = {}
        self._waking: DelayedCall | None = None
        broker.on_flushed(self._flushed)

    @property
    def epoch(self) -> int:
        """The creation id of ``/brokers/ids/N``."""
        return self.leadership.epoch

    @property
    def has_enough(self) -> bool:
        """Whether ``standby.min.insync`` members are in sync."""
        return self.leadership.has_enough

    @property
    def n_in_sync(self) -> int:
        """How many are in sync, this one counted."""
        return len(self.leadership.state.isr)

    @property
    def min_insync(self) -> int:
        """How many there must be for an acknowledgement by all."""
        return self._broker.config.integer("standby.min.insync")

    def begin(self, logs: Iterable[MemberLog]) -> None:
        """Lead these logs from their ends on: the epoch is noted, on disk, before anything is appended in it."""
        now = self._broker.now()
        with self._epochs.together():
            for log in logs:
                history = self._epochs.of(log.where)
                if not history.entries and log.end_offset > log.first_offset:
                    history.assign(0, log.first_offset)  # written before there were standbys
                history.assign(self.epoch, log.end_offset)
                history.raise_start(log.oldest_offset)
                log.led_in = self.epoch
                self._logs[log.where] = log
        for log in logs:
            self._do(self.leadership.lead(log.where, log.flushed_offset, log.watermark, now))
        self._wake_soon()

    def appended(self, log: MemberLog) -> None:
        """There is more to copy."""
        if self._parked:
            self._wake_soon()

    def has_come_far_enough(self, log: MemberLog) -> bool:
        """Whether everything the last leader can have shown is visible here."""
        leader = self.leadership.leaders.get(log.where)
        return leader is None or log.watermark >= leader.epoch_start

    def is_whole(self) -> bool:
        """Whether every member in sync holds everything."""
        return all(log.watermark >= log.end_offset for log in self._logs.values())

    # -- followers ------------------------------------------------------------------------------------------------

    def follow(self, request: FollowRequest, client: BrokerProtocol) -> Answer | Deferred[Answer]:
        """Answer a follower, now or when there is something to tell."""
        if request.epoch != self.epoch:
            raise NotServing(f"member {request.member} follows epoch {request.epoch}; this is {self.epoch}")
        if self._clients.get(request.member) is not client:
            self._meet(request.member, client)
        told = offsets_told({at.where: at for at in request.positions}, self._logs, self._epochs.of)
        number = MEMBERS.index(request.member)
        self._do(self.leadership.fetched(number, request.disk, told, self._broker.now()))
        parts = self._parts(request)
        if parts or not request.wait_ms:
            return self._answer(parts)
        parked = _Parked(request, Deferred(lambda _: self._unpark(request.member, parked)))
        parked.timer = self._broker.reactor.callLater(request.wait_ms / 1000, self._wake, request.member, parked, True)
        self._parked[request.member] = parked
        return parked.answer

    def is_follower(self, client: object) -> bool:
        """Whether a member asks on this connection."""
        return any(client is one for one in self._clients.values())

    def _meet(self, member: str, client: BrokerProtocol) -> None:
        """A new connection of a member: what comes on an older one is of a former life (KAFKA-15221)."""
        if member not in MEMBERS or MEMBERS.index(member) == self.leadership.state.leader:
            raise NotServing(f"{member!r} is no member that could follow here")
        before = self._clients.get(member)
        self._clients[member] = client
        if before is not None:
            before.drop("replaced", f"member {member} has come on another connection")
        client.when_gone.append(lambda: self._gone(member, client))

    def _gone(self, member: str, client: BrokerProtocol) -> None:
        if self._clients.get(member) is client:
            del self._clients[member]
            self.leadership.disconnected(MEMBERS.index(member), self._broker.now())
            self._broker.journal.emit(MemberGone(broker_id=self._broker.address.broker_id, member=member))

    def _parts(self, request: FollowRequest) -> list[Part]:
        positions = {at.where: at for at in request.positions}
        parts: list[Part] = []
        left, files = request.max_bytes, MOST_FILES
        # Begin anywhere: the first may fill the whole answer, as a large message needs; not always the same one.
        logs = list(self._logs.items())
        first = random.randrange(len(logs)) if logs else 0
        for where, log in (*logs[first:], *logs[:first]):
            most = left if left == request.max_bytes else min(left, MOST_PER_PARTITION) if files else 0
            part = part_for(where, positions.get(where), log, self._epochs.of(where), most)
            if part is not None:
                parts.append(part)
                left -= part.size
                files -= 1 if part.size else 0
        return parts

    def _answer(self, parts: list[Part]) -> Answer:
        answer: list[bytes | FileRange] = []
        for n, part in enumerate(parts):
            head = (encode_head(self.epoch, parts) if n == 0 else b"") + part.head()
            answer.append(head)
            if part.size:
                answer.append(self._logs[part.where].copy_out(part.offset, part.size))
        return answer or [encode_head(self.epoch, parts)]

    def _wake_soon(self) -> None:
        if self._waking is None:
            self._waking = self._broker.reactor.callLater(0, self._wake_all)

    def _wake_all(self) -> None:
        self._waking = None
        for member, parked in list(self._parked.items()):
            self._wake(member, parked, False)

    def _wake(self, member: str, parked: _Parked, time_is_up: bool) -> None:
        parts = self._parts(parked.request)
        if (parts or time_is_up) and self._forget(member, parked):
            parked.answer.callback(self._answer(parts))

    def _unpark(self, member: str, parked: _Parked) -> None:
        self._forget(member, parked)

    def _forget(self, member: str, parked: _Parked) -> bool:
        if self._parked.get(member) is not parked:
            return False
        del self._parked[member]
        if parked.timer is not None and parked.timer.active():
            parked.timer.cancel()
        return True

    # -- watermarks and the in-sync set ---------------------------------------------------------------------------

    def tick(self) -> None:
        """Look for members that have fallen behind or gone. Called by a timer."""
        self._do(self.leadership.tick(self._broker.now()))

    def stored(self, version: int) -> None:
        """The in-sync set that was proposed stands in ZooKeeper."""
        self._do(self.leadership.isr_written(version, self._broker.now()))

    def _flushed(self, log: Log) -> None:
        where = cast(MemberLog, log).where
        if self._logs.get(where) is log:
            self._do(self.leadership.appended(where, log.flushed_offset, self._broker.now()))

    def _do(self, steps: list[Step]) -> None:
        for step in steps:
            if isinstance(step, ProposeIsr):
                names = ", ".join(MEMBERS[number] for number in sorted(step.isr))
                self._broker.journal.emit(
                    InSyncChanged(broker_id=self._broker.address.broker_id, members=names, reason=step.why)
                )
                self._propose(step)
            else:
                log = self._logs[step.where]
                log.watermark = step.offset
                self._watermarks.moved(log)
                self._wake_soon()
