"""confluent-kafka, unmodified, through the death and the return of its group's coordinator.

Paper: §3.2 (offsets are kept in ZooKeeper), §3.3 (at least once). Spec: modern-group-protocol §3.6, §3.7, §11.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.integration.group_protocol.failover import FailoverCluster
from tests.waiting import until

STEP = 20


class Careful:
    """A consumer that commits after every batch, and watches that nothing it has committed comes again."""

    def __init__(self, cluster: FailoverCluster, group: str, **settings: Any) -> None:
        base = {
            "bootstrap.servers": cluster.bootstrap, "group.id": group, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "fetch.wait.max.ms": 50, "topic.metadata.refresh.interval.ms": 1000,
            "reconnect.backoff.max.ms": 500, "retry.backoff.ms": 50,
        }  # fmt: skip
        if settings.get("group.protocol") != "consumer":
            base |= {"heartbeat.interval.ms": 100, "session.timeout.ms": 30_000}
        self._consumer = Consumer(base | settings)
        self.values: set[bytes] = set()
        self.acknowledged: dict[int, int] = {}
        self._consumer.subscribe(["t"])

    def read(self, done: Callable[[], object], what: str) -> None:
        """Consume and commit until ``done``."""

        def turn() -> object:
            for message in self._consumer.consume(STEP, 0.05):
                if message.error() is None:
                    assert message.offset() >= self.acknowledged.get(message.partition(), 0), "committed, and again"
                    self.values.add(message.value())
            try:
                for each in self._consumer.commit(asynchronous=False):
                    if each.error is None and each.offset >= 0:
                        self.acknowledged[each.partition] = each.offset
            except KafkaException:
                pass  # nothing to commit, or the group is moving: what was not acknowledged may come again
            return done()

        until(turn, what)

    def committed(self) -> dict[int, int]:
        """What the coordinator says."""
        asked = [TopicPartition("t", number) for number in range(4)]
        return {each.partition: each.offset for each in self._consumer.committed(asked, timeout=60)}

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


@pytest.mark.parametrize(
    "settings",
    [
        {"partition.assignment.strategy": "range"},
        {"partition.assignment.strategy": "cooperative-sticky"},
        {"group.instance.id": "one"},
        {"group.protocol": "consumer"},
        {"auto.offset.reset": "latest", "partition.assignment.strategy": "range"},
    ],
    ids=["range", "cooperative", "static", "kip-848", "latest"],
)
def test_a_group_outlives_its_coordinator(zk_connect: str, tmp_path: Path, settings: dict[str, Any]) -> None:
    """Coordinator killed, replaced, back, with messages coming all the time: everything is consumed, and nothing comes
    again once its commit was acknowledged and copied (§3.2, §3.3)."""
    with FailoverCluster(zk_connect, tmp_path) as cluster:
        group = cluster.group_of(1)
        published: set[bytes] = set()

        def publish(mark: str) -> None:
            for partition in range(4):
                some = [f"{mark}-{partition}-{n}".encode() for n in range(50)]
                cluster.publish(some, partition)
                published.update(some)

        def members_at(number: int) -> object:
            return cluster.brokers[number].state()["plugins"]["modern"]["groups"].get(group, {}).get("members")

        reader = Careful(cluster, group, **settings)
        reader.read(lambda: members_at(1), "it is a member")
        if settings.get("auto.offset.reset") == "latest":
            # Wherever it began, from its first commit on nothing may be left out.
            publish_until_committed(cluster, reader)
        publish("before")
        reader.read(lambda: reader.values >= published and reader.acknowledged == cluster.ends, "everything before")
        cluster.copied(1)
        cluster.brokers[1].kill()
        publish("dead")
        reader.read(lambda: members_at(2), "it is a member at the other broker")
        publish("interim")
        reader.read(lambda: reader.values >= published and reader.acknowledged == cluster.ends, "everything meanwhile")
        cluster.brokers[1].restart()
        publish("return")
        reader.read(lambda: members_at(1), "it is a member at the first again")
        publish("after")
        reader.read(lambda: reader.values >= published and reader.acknowledged == cluster.ends, "everything after")
        assert reader.committed() == cluster.ends
        reader.close()


def publish_until_committed(cluster: FailoverCluster, reader: Careful) -> None:
    """Let a consumer that begins at the end see something of every partition."""

    def more() -> bool:
        for partition in cluster.ends.keys() - reader.acknowledged.keys():
            cluster.publish([b"knock"], partition)
        return reader.acknowledged == cluster.ends

    reader.read(more, "every partition has an offset")
