"""All replicas of a broker: what a controller has decided about them, and who acts accordingly.

    LeaderAndIsr    larger leader epoch: lead (``leading``) or follow (``following``); equal or smaller: refused
    StopReplica     follow and lead no more; delete the log if so told
    UpdateMetadata  which brokers live, and where

Who decides: a controller, from the moment one has been seen, be it its node or a request of it. A broker that has never
seen one leads, by itself, the partitions of which it is the only replica.

| a request that | is refused with |
|---|---|
| comes from an older controller than was seen before | STALE_CONTROLLER_EPOCH |
| was meant for an earlier life of this broker | STALE_BROKER_EPOCH |
| knows no newer leadership than this broker | STALE_CONTROLLER_EPOCH, for the partition |
| stops a replica of a newer leadership | FENCED_LEADER_EPOCH, for the partition |
| names this broker neither leader nor replica | UNKNOWN_TOPIC_OR_PARTITION |
| concerns a log that is offline | KAFKA_STORAGE_ERROR |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from twisted.internet.defer import DeferredLock
from twisted.internet.threads import deferToThread

from kafka2011.broker.reactor import Reactor
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress
from since2011.log.manager import LogManager
from since2011.log.settings import LogConfig
from since2011.replication.events import ControllerObeyed, LeadershipBegun
from since2011.replication.following import Following
from since2011.replication.leader import Leader
from since2011.replication.leadership import Leaderships
from since2011.replication.leading import Leading
from since2011.replication.led import Led
from since2011.replication.partition_state import PartitionState
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused, refusal

Key = tuple[str, int]
_DELETED = -2
"""The leader epoch of a StopReplica for a topic that is being deleted."""


@dataclass(slots=True)
class Replica:
    """A partition a controller has told this broker of."""

    state: PartitionState
    is_new: bool


class ReplicaManager:
    """Thread: reactor; one request of a controller at a time."""

    def __init__(
        self,
        me: int,
        logs: LogManager,
        *,
        led: dict[Key, Led],
        leading: Leading,
        following: Following,
        leaderships: Leaderships,
        config_of: Callable[[str], LogConfig],
        topic_id_of: Callable[[str], UUID | None],
        broker_epoch: Callable[[], int],
        term: Callable[[], int],
        reactor: Reactor,
        journal: Journal,
    ) -> None:
        self.me, self.logs = me, logs
        self.led, self.leading, self.following, self.leaderships = led, leading, following, leaderships
        self._config_of, self._topic_id_of = config_of, topic_id_of
        self._broker_epoch, self._term = broker_epoch, term
        self._reactor, self._journal = reactor, journal
        self.replicas: dict[Key, Replica] = {}
        self.topics: dict[str, int] = {}
        """How many replicas of each topic are here."""
        self.brokers: dict[int, BrokerAddress] = {}
        """The living brokers, as the controller sees them."""
        self.controller_epoch = 0
        self.obeys = False
        self.is_leaving = False
        """This broker is about to stop: it follows nobody anew."""
        self._one_at_a_time = DeferredLock()

    # -- whose word counts ----------------------------------------------------------------------------------------

    def obey(self) -> None:
        """There is a controller: what this broker led by itself it leads no more."""
        if self.obeys:
            return
        self.obeys = True
        self._journal.emit(ControllerObeyed(controller_epoch=self.controller_epoch))
        for key, led in list(self.led.items()):
            del self.led[key]
            led.waits.fail(_not_leader(*key))
        self.leaderships.none()

    def problem(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Why a request of a controller is refused as a whole."""
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if 0 <= broker_epoch < self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        self.controller_epoch = controller_epoch
        self.obey()
        return ErrorCode.NONE

    def is_live(self, broker: int) -> bool:
        """Whether a broker may be let into an in-sync set."""
        return broker in self.brokers

    def update_brokers(self, brokers: dict[int, BrokerAddress]) -> None:
        """These live, and no others."""
        self.brokers = brokers

    def address_of(self, broker: int) -> BrokerAddress | None:
        """Where to reach a leader."""
        return self.brokers.get(broker)

    # -- decisions ------------------------------------------------------------------------------------------------

    async def leader_and_isr(self, body: Struct) -> Struct:
        """Carry out a controller's LeaderAndIsr; the answer."""
        await self._one_at_a_time.acquire()
        try:
            error = self.problem(body.controller_epoch, body.broker_epoch)
            self.brokers |= {one.id: BrokerAddress(one.id, one.host, one.port) for one in body.live_leaders}
            rows = []
            for topic in body.topics:
                for one in topic.partitions:
                    code = error or await self._decided(topic.name, one)
                    rows.append(Struct(topic=topic.name, index=one.index, error=code))
            self.leading.followers.wake_all()
            return Struct(error=error, partitions=rows)
        finally:
            self._one_at_a_time.release()

    async def _decided(self, topic: str, one: Struct) -> ErrorCode:
        key = topic, int(one.index)
        known = self.replicas.get(key)
        state = PartitionState(
            one.leader,
            one.leader_epoch,
            tuple(one.isr),
            tuple(one.replicas),
            one.controller_epoch,
            one.partition_epoch,
        )
        if self.me not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if known is not None and state.leader_epoch <= known.state.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        try:
            self.logs.get(*key)
            if state.leader == self.me:
                await self._lead(key, state, bool(one.is_new))
            elif state.leader in self.brokers:
                await self._follow(key, state, bool(one.is_new))
            # else nobody leads: nothing of it is taken over, and the same epoch is good when the leader lives
        except Kafka2011Error as error:
            return refusal(error)[0]
        return ErrorCode.NONE

    def _keep(self, key: Key, replica: Replica) -> None:
        if key not in self.replicas:
            self.topics[key[0]] = self.topics.get(key[0], 0) + 1
        self.replicas[key] = replica

    async def _lead(self, key: Key, state: PartitionState, is_new: bool) -> None:
        await self.following.leave(*key)
        self._keep(key, Replica(state, is_new))
        before = self.led.get(key)
        now = self._reactor.seconds()
        topic_id = self._topic_id_of(key[0])
        log = self.logs.get(*key)
        if log is not None and topic_id is not None and log.topic_id not in (None, topic_id):
            log = None  # of a topic that was deleted while this broker was away; it makes room when this one is written
        led = Led(*key, topic_id or UUID(int=0), state.leader_epoch, log, term=self._term(), is_new=is_new)
        if log is not None:
            # Before anything is written in it, and also if nothing ever is (KAFKA-7415).
            log.epochs.assign(state.leader_epoch, log.log_end_offset)
        if len(state.replicas) > 1:
            rules = replace(self.leading.rules, min_insync=self._config_of(key[0]).min_insync_replicas)
            end, high = led.log_end_offset, led.high_watermark
            led.leader = Leader(self.me, state, end, high, rules, now, before=None if before is None else before.leader)
            self._journal.emit(
                LeadershipBegun(topic=key[0], partition=key[1], leader_epoch=state.leader_epoch, log_end_offset=end)
            )
        elif log is not None:
            log.raise_high_watermark(log.log_end_offset)
        if before is not None:
            led.waits = before.waits
        self.led[key] = led
        if led.leader is not None:
            self.leading.act(led, led.leader.begin(now))
        led.waits.reached(led.high_watermark)
        self.leading.readers.wake(*key)
        self.leaderships.elected(key[0], key[1], state.leader_epoch)

    async def _follow(self, key: Key, state: PartitionState, is_new: bool) -> None:
        self._resign(key)
        self._keep(key, Replica(state, is_new))
        if self.is_leaving:
            # Else a leader would let it into the in-sync set once more, and wait for it when it is gone (KAFKA-14140).
            await self.following.leave(*key)
        else:
            await self.following.follow(*key, state)

    def _resign(self, key: Key) -> None:
        led = self.led.pop(key, None)
        if led is None:
            return
        led.waits.fail(_not_leader(*key))
        self.leading.followers.wake(*key)
        self.leading.readers.wake(*key)
        self.leaderships.resigned(*key)

    async def stop_replica(self, body: Struct) -> Struct:
        """Carry out a controller's StopReplica; the answer."""
        await self._one_at_a_time.acquire()
        try:
            error = self.problem(body.controller_epoch, body.broker_epoch)
            rows = []
            for topic in body.topics:
                for one in topic.partitions:
                    key = topic.name, int(one.index)
                    code = error or await self._stop_one(key, one.leader_epoch, bool(one.delete))
                    rows.append(Struct(topic=topic.name, index=one.index, error=code))
            return Struct(error=error, partitions=rows)
        finally:
            self._one_at_a_time.release()

    async def _stop_one(self, key: Key, epoch: int, delete: bool) -> ErrorCode:
        known = self.replicas.get(key)
        if known is not None and 0 <= epoch < known.state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        self._resign(key)
        await self.following.leave(*key)
        if not delete:
            return ErrorCode.NONE
        if known is not None:
            del self.replicas[key]
            self.topics[key[0]] -= 1
            if not self.topics[key[0]]:
                del self.topics[key[0]]
        try:
            await deferToThread(self.logs.delete, *key)
        except (Kafka2011Error, OSError):
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def update_metadata(self, body: Struct, brokers: dict[int, BrokerAddress]) -> ErrorCode:
        """Carry out a controller's UpdateMetadata."""
        error = self.problem(body.controller_epoch, body.broker_epoch)
        if not error:
            self.update_brokers(brokers)
        return error

    # -- what there is --------------------------------------------------------------------------------------------

    def find(self, topic: str, index: int) -> Led:
        """The partition, if a controller has made this broker its leader. Raises Refused, LogError when offline."""
        led = self.led.get((topic, index))
        if led is None:
            self.logs.get(topic, index)
            raise _not_leader(topic, index)
        return led

    def reconfigured(self, topic: str, config: LogConfig) -> None:
        """A topic's settings have changed."""
        for led in list(self.led.values()):
            if led.topic == topic:
                self.leading.reconfigured(led, config.min_insync_replicas)

    def describe(self) -> dict[str, dict[str, object]]:
        """Topic -> partition -> role and epoch, for whoever looks from outside."""
        found: dict[str, dict[str, object]] = {}
        for (topic, index), replica in self.replicas.items():
            led = self.led.get((topic, index))
            shown: dict[str, object] = {"leader": replica.state.leader, "epoch": replica.state.leader_epoch}
            shown["replicas"] = list(replica.state.replicas)
            shown["isr"] = list(replica.state.isr if led is None or led.leader is None else led.leader.state.isr)
            if led is not None and led.leader is not None:
                shown["ends"] = {str(r): progress.log_end for r, progress in led.leader.followers.items()}
            found.setdefault(topic, {})[str(index)] = shown
        return found


def _not_leader(topic: str, index: int) -> Refused:
    return Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is not led by this broker")
