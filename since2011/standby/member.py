"""One member's work outside the reactor: find out who leads, copy from it, run for leadership, keep the lease.

    look      nobody leads -> run, if in sync -> lead
              another leads -> follow until the connection breaks or the node changes -> look
    lead      renew the lease, store in-sync sets, until told to stop

One thread does all of it; what concerns clients happens in the reactor. Paper: §3.3, future work.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from kafka2011.client import BrokerConnection
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.errors import InvalidMessageSize, Kafka2011Error
from kafka2011.types import BrokerAddress, TopicPartition
from since2011.replication.leader import ProposeIsr
from since2011.standby.copying import take
from since2011.standby.events import Following, HistoryCut, StandbyTrouble
from since2011.standby.follow import NOT_PARTING, FollowRequest, Position, read_answer
from since2011.standby.in_sync import MEMBERS, InSync, may_lead
from since2011.standby.member_log import MemberLog
from since2011.standby.registry import StandbyRegistry
from zk_registry.operations import RegistryError

if TYPE_CHECKING:
    from since2011.standby.plugin import StandbyPlugin

WAIT_MS = 500
MAX_BYTES = 4 << 20
RETRY_S = 0.1


class Member:
    """Thread: its own."""

    def __init__(self, plugin: StandbyPlugin, registry: StandbyRegistry) -> None:
        self._plugin, self._registry = plugin, registry
        self._broker, self._store = plugin.broker, plugin.broker.store
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._proposals: queue.SimpleQueue[ProposeIsr | None] = queue.SimpleQueue()
        self._max_bytes = MAX_BYTES
        self._trouble: str | None = None
        self.leader: BrokerAddress | None = None
        self.epoch = -1
        """Of the leader that is followed."""

    def stop(self) -> None:
        """End soon. Thread: any."""
        self._stopping.set()
        self._wake.set()
        self._proposals.put(None)

    def propose(self, proposal: ProposeIsr) -> None:
        """Store an in-sync set. Thread: any."""
        self._proposals.put(proposal)

    def changed(self, _: str = "") -> None:
        """Who leads may have changed. Thread: any."""
        self._wake.set()

    # -- looking --------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Look, follow, run, until told to stop or elected and stopped again."""
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self._registry.enter(self._plugin.told_address)
                found = self._registry.leader(self.changed)
                if found is None:
                    if self._run():
                        return
                elif found[0] is not None and found[0] != self._plugin.address:
                    self._follow(found[0], found[1])
                self._tell(None)
            except (RegistryError, Kafka2011Error, OSError) as error:
                self._tell(str(error))
            self._plugin.is_up()
            self._wake.wait(RETRY_S)

    def _tell(self, trouble: str | None) -> None:
        """Tell of a trouble once."""
        if trouble is not None and trouble != self._trouble and not self._stopping.is_set():
            event = StandbyTrouble(broker_id=self._plugin.broker_id, member=self._plugin.member, reason=trouble)
            self._broker.journal.emit(event)
        self._trouble = trouble

    @property
    def trouble(self) -> str | None:
        """What keeps this member from its work."""
        return self._trouble

    # -- following ------------------------------------------------------------------------------------------------

    def _follow(self, leader: BrokerAddress, epoch: int) -> None:
        timeout_s = max(2.0, 4 * WAIT_MS / 1000)
        with BrokerConnection(leader.host, leader.port, timeout_s=timeout_s, connect_timeout_s=RETRY_S) as connection:
            while not (self._stopping.is_set() or self._wake.is_set()):
                request = FollowRequest(
                    self._plugin.member, self._plugin.disk, epoch, WAIT_MS, self._max_bytes, self._positions()
                )
                _, parts = read_answer(connection.ask(request.encode(), 1 << 30))
                if self.leader != leader or self.epoch != epoch:
                    self.leader, self.epoch = leader, epoch
                    self._broker.journal.emit(
                        Following(broker_id=self._plugin.broker_id, member=self._plugin.member, epoch=epoch,
                                  leader=f"{leader.host}:{leader.port}")
                    )  # fmt: skip
                    self._plugin.is_up()
                for part, data in parts:
                    log = self._log(part.where)
                    before = log.end_offset
                    try:
                        take(part, data, log, self._plugin.epochs.of(part.where))
                    except InvalidMessageSize:
                        # A message larger than an answer: the next one may be as large as it asks for.
                        self._max_bytes = max(self._max_bytes, 4 + int.from_bytes(data[:4], "big"))
                    if part.parting != NOT_PARTING and before > log.end_offset:
                        size, offset = before - log.end_offset, log.end_offset
                        self._broker.journal.emit(
                            HistoryCut(topic=log.topic, partition=log.partition, offset=offset, size=size)
                        )
                self._flush()

    def _log(self, where: TopicPartition) -> MemberLog:
        log, _ = self._store.create(where.topic, where.partition)
        assert isinstance(log, MemberLog)
        return log

    def _positions(self) -> tuple[Position, ...]:
        epochs = self._plugin.epochs
        return tuple(
            Position(log.where, epochs.of(log.where).latest, log.end_offset, log.watermark, log.first_offset)
            for log in self._plugin.logs()
        )

    def _flush(self) -> None:
        now = SYSTEM_CLOCK.monotonic()
        for log in self._plugin.logs():
            if log.should_flush(now):
                log.flush()

    # -- leading --------------------------------------------------------------------------------------------------

    def _run(self) -> bool:
        plugin = self._plugin
        wanted = may_lead(
            self._registry.in_sync(), plugin.member, plugin.disk, self._registry.alive(), whole=not self._store.missing
        )
        if wanted is None:
            return False
        for log in plugin.logs():
            log.flush()
        term = plugin.session.incarnation
        won = self._registry.run(wanted, plugin.address, plugin.started_ms)
        if won is None:
            return False
        plugin.elected(*won, wanted, term)
        self._keep(won[0])
        return True

    def _keep(self, epoch: int) -> None:
        """Renew the lease, store in-sync sets and watch the broker's node until told to stop."""
        pace_s = self._plugin.lease.length_s / 8
        self._wake.set()
        while not self._stopping.is_set():
            try:
                proposal = self._proposals.get(timeout=pace_s)
            except queue.Empty:
                proposal = None
            try:
                if self._wake.is_set():
                    self._wake.clear()
                    found = self._registry.leader(self.changed)
                    if found is None or found[1] != epoch:
                        self._plugin.over("the node of this broker was taken away")
                        return
                if proposal is not None:
                    self._store_set(proposal)
                elif not self._stopping.is_set():
                    self._plugin.leased.renew()
            except RegistryError as error:
                self._tell(str(error))

    def _store_set(self, proposal: ProposeIsr) -> None:
        """Until it is stored or refused, or the leadership is over."""
        disks = self._plugin.disks
        wanted = InSync({MEMBERS[n]: disks[n] for n in proposal.isr}, proposal.version)
        while not self._stopping.is_set():
            try:
                version = self._registry.store(wanted)
            except RegistryError as error:
                self._tell(str(error))
                self._stopping.wait(RETRY_S)
                continue
            self._plugin.stored(version)
            return
