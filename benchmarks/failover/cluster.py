"""Three brokers, a ZooKeeper, and what can be done to them."""

from __future__ import annotations

import random
import shutil
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.failover.judge import Log, read_log
from kafka2011.testing import BrokerProcess, unhandled_errors
from tests.integration.since2011.replicas import Seen, brokers_seen, seen
from tests.interop.since2011.real_broker import RealBroker
from tests.waiting import until
from zk_registry.embedded import EmbeddedZooKeeper

N_BROKERS, REAL = 3, 9
TOPIC = "kept"
SETTLE_S = 120.0
OPTIONS = {
    "modern.port": 0,
    "port.access": "off",
    "zk.sessiontimeout.ms": 6000,
    "replica.lag.time.max.ms": 10_000,
    "auto.create.topics.enable": False,
    "log.segment.bytes": 1 << 20,
}


class Topics(ABC):
    """A replicated topic in any cluster of three brokers, through the protocol only."""

    @abstractmethod
    def addresses(self) -> list[str]:
        """Of the brokers' modern ports."""

    def everyone(self) -> set[int]:
        """The brokers there should be."""
        return set(range(N_BROKERS))

    def controllers(self) -> str:
        """Whom to ask for topics."""
        return self.bootstrap

    @property
    def bootstrap(self) -> str:
        """All of them."""
        return ",".join(self.addresses())

    def create(self, topic: str, n_partitions: int, n_replicas: int, min_insync: int) -> None:
        """Make a topic, and wait until all replicas are in sync."""
        everyone = self.everyone()
        until(lambda: all(brokers_seen(a) == everyone for a in self.addresses()), "all brokers see all", SETTLE_S)
        admin = AdminClient({"bootstrap.servers": self.controllers(), "log_level": 0})
        config = {"min.insync.replicas": str(min_insync)}
        rows = [[(index + n) % N_BROKERS for n in range(n_replicas)] for index in range(n_partitions)]
        new = NewTopic(topic, n_partitions, replica_assignment=rows, config=config)
        admin.create_topics([new])[topic].result(60)
        self.wait_whole(topic, n_partitions, n_replicas)

    def wait_whole(self, topic: str, n_partitions: int, n_replicas: int) -> None:
        """Wait until every replica is in sync."""

        def whole() -> bool:
            rows = [seen(self.addresses()[0], topic, index) for index in range(n_partitions)]
            return all(row is not None and len(row.isr) == n_replicas for row in rows)

        until(whole, "every replica is in sync", SETTLE_S)

    def leader(self, topic: str, partition: int) -> Seen:
        """Who leads a partition, as anybody tells who is asked."""

        def found() -> Seen | None:
            for address in self.addresses():
                row = seen(address, topic, partition)
                if row is not None and row.leader >= 0:
                    return row
            return None

        return until(found, "somebody tells who leads", SETTLE_S) or Seen(-1, frozenset())

    def prefer(self, topic: str, n_partitions: int) -> None:
        """Let the first replica of each partition lead again."""
        admin = AdminClient({"bootstrap.servers": self.controllers(), "log_level": 0})
        partitions = [TopicPartition(topic, index) for index in range(n_partitions)]
        admin.elect_leaders(ElectionType.PREFERRED, partitions).result(60)


class Cluster(Topics):
    """The processes, and the faults. Thread: one."""

    def __init__(
        self,
        place: Path,
        stack: ExitStack,
        seed: int,
        *,
        options: dict[str, object] | None = None,
        real: dict[str, object] | None = None,
    ) -> None:
        """``options`` are settings of our brokers; ``real`` those of a real Kafka 3.9 that is the controller."""
        self.random = random.Random(seed)
        self.zookeeper = stack.enter_context(EmbeddedZooKeeper(servers=1, tick_ms=500))
        self.real: RealBroker | None = None
        if real is not None:
            # First, so that it is the controller.
            self.real = RealBroker(f"{self.zookeeper.connect}/modern", place / "real", broker_id=REAL, **real)
            stack.enter_context(self.real)
        self.brokers = [
            BrokerProcess(
                place / f"broker-{n}",
                OPTIONS | {"brokerid": n, "zk.connect": self.zookeeper.connect} | (options or {}),
            )
            for n in range(N_BROKERS)
        ]
        for broker in self.brokers:
            broker.expected_errors = ("",)  # judged at the end, for all processes together
            stack.enter_context(broker)
        self.struck: Counter[str] = Counter()

    def addresses(self) -> list[str]:
        """Of the modern ports."""
        return [f"127.0.0.1:{broker.modern_port}" for broker in self.brokers if broker.modern_port]

    def everyone(self) -> set[int]:
        """The real controller is one of them."""
        return super().everyone() | (set() if self.real is None else {REAL})

    def controllers(self) -> str:
        """The real one answers nobody who asks another."""
        return self.bootstrap if self.real is None else self.real.bootstrap

    def halt(self, number: int) -> None:
        """Stop it as an administrator would."""
        self.brokers[number].stop()

    def revive(self, number: int) -> None:
        """Start it again."""
        self.brokers[number].restart()

    # -- faults ---------------------------------------------------------------------------------------------------

    def strike(self) -> str:
        """One fault, chosen by chance, and its end."""
        faults: list[tuple[str, Callable[[int], None], int]] = [
            ("kill", self._kill, 6),
            ("freeze", self._freeze, 4),
            ("expire", self._expire, 2),
            ("stop", self._stop, 2),
            ("wipe", self._wipe, 1),
            ("zookeeper", self._zookeeper, 1),
        ]
        name, strike, _ = self.random.choices(faults, [weight for _, _, weight in faults])[0]
        number = self.random.randrange(N_BROKERS)
        self.struck[name] += 1
        strike(number)
        return f"{name} {number}"

    def _pause(self, low: float, high: float) -> None:
        time.sleep(self.random.uniform(low, high))

    def _kill(self, number: int) -> None:
        self.brokers[number].kill()
        self._pause(0.0, 8.0)
        self.brokers[number].restart()

    def _freeze(self, number: int) -> None:
        """It goes on as if nothing had been, and its session with it."""
        self.brokers[number].pause()
        self._pause(0.2, 4.0)
        self.brokers[number].resume()

    def _expire(self, number: int) -> None:
        """It goes on as if nothing had been, but its session has ended and others lead."""
        self.brokers[number].pause()
        self._pause(8.0, 12.0)
        self.brokers[number].resume()

    def _stop(self, number: int) -> None:
        self.brokers[number].stop()
        self._pause(0.0, 2.0)
        self.brokers[number].restart()

    def _wipe(self, number: int) -> None:
        """A disk is lost, while the others have everything."""
        n_partitions = len(list((self.logs_of((number + 1) % N_BROKERS)).glob(f"{TOPIC}-*")))
        self.wait_whole(TOPIC, n_partitions, N_BROKERS)
        broker = self.brokers[number]
        broker.kill()
        shutil.rmtree(self.logs_of(number))
        self._pause(0.0, 8.0)
        broker.restart()

    def _zookeeper(self, _number: int) -> None:
        self.zookeeper.kill(0)
        self._pause(0.0, 3.0)
        self.zookeeper.restart(0)

    # -- what is left ---------------------------------------------------------------------------------------------

    def logs_of(self, number: int) -> Path:
        """The modern logs of a broker."""
        return self.brokers[number].log_dir / ".modern" / "logs"

    def logs(self, topic: str, partition: int) -> dict[int, Log]:
        """A partition's log at each broker."""
        found = {n: self.logs_of(n) / f"{topic}-{partition}" for n in range(N_BROKERS)}
        return {n: read_log(path) for n, path in found.items() if path.is_dir()}

    def unhandled(self) -> list[str]:
        """Errors in any log that nobody handled."""
        return [text for broker in self.brokers for text in unhandled_errors(broker.output)]
