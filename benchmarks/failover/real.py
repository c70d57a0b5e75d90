"""Three real Kafka 3.9 brokers in ZooKeeper mode, to be struck in the same way."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from benchmarks.failover.cluster import N_BROKERS, Topics
from tests.interop.since2011.real_broker import RealBroker
from zk_registry.embedded import EmbeddedZooKeeper


class RealCluster(Topics):
    """The processes. Thread: one."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self.zookeeper = stack.enter_context(EmbeddedZooKeeper(servers=1, tick_ms=500))
        self.brokers = [
            RealBroker(
                f"{self.zookeeper.connect}/modern",
                place / f"real-{n}",
                broker_id=n,
                zookeeper_session_timeout_ms=6000,
                replica_lag_time_max_ms=10_000,
                controlled_shutdown_enable="true",
                auto_leader_rebalance_enable="false",
            )
            for n in range(N_BROKERS)
        ]
        for broker in self.brokers:
            stack.enter_context(broker)

    def addresses(self) -> list[str]:
        """Of the brokers."""
        return [broker.bootstrap for broker in self.brokers]

    def halt(self, number: int) -> None:
        """Stop it as an administrator would."""
        self.brokers[number].stop()

    def revive(self, number: int) -> None:
        """Start it again."""
        self.brokers[number].start()
