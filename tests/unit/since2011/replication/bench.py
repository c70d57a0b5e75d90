"""A broker's replicas on a clock of the test's: real logs, real rules, no other brokers."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock

from kafka2011.events import Journal
from since2011.log.identity import Identity
from since2011.log.log import ModernLog
from since2011.log.manager import LogManager
from since2011.log.settings import LogConfig
from since2011.log.validation import Prepared
from since2011.replication.copy import Logs
from since2011.replication.delayed_fetch import DelayedFetches
from since2011.replication.fetcher import FetchSettings
from since2011.replication.flushes import Flushes
from since2011.replication.following import Following
from since2011.replication.leader import SyncRules
from since2011.replication.leadership import Leaderships
from since2011.replication.leading import Leading
from since2011.replication.led import Led
from since2011.replication.manager import ReplicaManager
from since2011.replication.throttle import Throttle
from since2011.wire.codec import Struct
from since2011.wire.records import Record, encode_records

T = TypeVar("T")
ME, OTHER, THIRD = 1, 2, 3
BROKER_EPOCH = 50


def batch(*values: bytes) -> bytearray:
    """Records as a producer sends them."""
    return bytearray(encode_records([Record(n, 1_700_000_000_000, b"k", value) for n, value in enumerate(values)]))


def outcome(work: Coroutine[Any, Any, T] | Deferred[T]) -> list[T]:
    """What ``work`` has come to so far; empty while it waits."""
    found: list[T] = []
    deferred = work if isinstance(work, Deferred) else Deferred.fromCoroutine(work)
    deferred.addCallback(found.append)
    return found


class Replicas:
    """Everything of replication on broker 1."""

    def __init__(self, directory: Path, *, min_insync: int = 1) -> None:
        self.reactor = MemoryReactorClock()
        self.logs = LogManager([directory], Identity(ME, "4lXOlHdzR7eFnm5NhfMSNA"))
        self.logs.start()
        self.config = LogConfig(min_insync_replicas=min_insync)
        self.has_lease = True
        led: dict[tuple[str, int], Led] = {}
        reactor: Any = self.reactor
        flushes = Flushes()
        self.leading = Leading(
            reactor,
            led,
            flushes,
            DelayedFetches(reactor),
            rules=SyncRules(lag_s=10.0, grace_s=0.5),
            has_lease=lambda term: self.has_lease,
        )
        following = Following(
            ME,
            Logs(self.logs.get, self.logs.get_or_create, self.logs.checkpoint),
            reactor=reactor,
            journal=Journal(),
            settings=FetchSettings(),
            address_of=lambda leader: self.manager.address_of(leader),
            flushes=flushes,
            throttle=Throttle(self.reactor.seconds, lambda: None, lambda topic, index: False),
        )
        self.manager = ReplicaManager(
            ME,
            self.logs,
            led=led,
            leading=self.leading,
            following=following,
            leaderships=Leaderships(),
            config_of=lambda topic: self.config,
            topic_id_of=lambda topic: None,
            broker_epoch=lambda: BROKER_EPOCH,
            term=lambda: 1,
            reactor=reactor,
            journal=Journal(),
        )

    def decide(
        self,
        leader: int,
        epoch: int,
        *,
        isr: tuple[int, ...] = (ME, OTHER, THIRD),
        replicas: tuple[int, ...] = (ME, OTHER, THIRD),
        topic: str = "t",
        controller_epoch: int = 1,
        broker_epoch: int = BROKER_EPOCH,
        live: tuple[int, ...] = (ME, OTHER, THIRD),
    ) -> tuple[int, int]:
        """LeaderAndIsr for partition 0: the errors of the whole and of the partition."""
        one = Struct(
            index=0,
            controller_epoch=controller_epoch,
            leader=leader,
            leader_epoch=epoch,
            isr=list(isr),
            partition_epoch=epoch,
            replicas=list(replicas),
            adding=[],
            removing=[],
            is_new=epoch == 0,
        )
        body = Struct(
            controller_id=9,
            controller_epoch=controller_epoch,
            broker_epoch=broker_epoch,
            topics=[Struct(name=topic, partitions=[one])],
            live_leaders=[Struct(id=broker, host="127.0.0.1", port=9000 + broker) for broker in live],
        )
        (answer,) = outcome(self.manager.leader_and_isr(body))
        return answer.error, answer.partitions[0].error

    def stop(self, epoch: int, *, delete: bool = False, controller_epoch: int = 1) -> tuple[int, int]:
        """StopReplica for partition 0 of ``t``."""
        one = Struct(index=0, leader_epoch=epoch, delete=delete)
        body = Struct(
            controller_epoch=controller_epoch,
            broker_epoch=BROKER_EPOCH,
            topics=[Struct(name="t", partitions=[one])],
        )
        (answer,) = outcome(self.manager.stop_replica(body))
        return answer.error, answer.partitions[0].error

    @property
    def led(self) -> Led:
        """Partition 0 of ``t``."""
        return self.manager.find("t", 0)

    @property
    def log(self) -> ModernLog:
        """Its log."""
        log = self.logs.get("t", 0)
        assert log is not None
        return log

    def append(self, *values: bytes, everywhere: bool = True, timeout_s: float = 5.0) -> Deferred[None] | None:
        """Append as a produce does; what it waits for."""
        led = self.led
        self.leading.check(led, everywhere=everywhere)
        if led.log is None:
            led.log = self.logs.get_or_create("t", 0)
        appended = led.log.append(Prepared(batch(*values)), led.leader_epoch)
        return self.leading.stored(led, appended.last_offset + 1, everywhere=everywhere, timeout_s=timeout_s)

    def close(self) -> None:
        """End."""
        self.manager.following.stop()
        self.logs.close()
