"""Three brokers, three replicas: a leader dies and nothing that was acknowledged is missing (issue 26, must show 2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka2011.testing import BrokerProcess
from since2011.client.connection import ModernConnection
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.records import decode_records
from tests.integration.since2011.replicas import Seen, batches_of, brokers_seen, seen
from tests.waiting import until

N_BROKERS, TOPIC = 3, "kept"
EVERYONE = frozenset(range(N_BROKERS))


@pytest.fixture
def cluster(zk_connect: str, tmp_path: Path) -> Iterator[list[BrokerProcess]]:
    """Three brokers, and a topic with a replica on each, led by the first."""
    options = {"modern.port": 0, "zk.connect": zk_connect, "port.access": "off", "auto.create.topics.enable": False}
    with ExitStack() as stack:
        brokers = [
            stack.enter_context(BrokerProcess(tmp_path / f"broker-{n}", options | {"brokerid": n}))
            for n in range(N_BROKERS)
        ]
        until(lambda: all(brokers_seen(address(each)) == EVERYONE for each in brokers), "all see all")
        admin = AdminClient({"bootstrap.servers": bootstrap(brokers)})
        new = NewTopic(TOPIC, 1, replica_assignment=[[0, 1, 2]], config={"min.insync.replicas": "2"})
        admin.create_topics([new])[TOPIC].result(60)
        until(lambda: seen(address(brokers[2]), TOPIC) == Seen(0, EVERYONE), "every replica is in sync")
        yield brokers


def address(broker: BrokerProcess) -> str:
    return f"127.0.0.1:{broker.modern_port}"


def bootstrap(brokers: list[BrokerProcess]) -> str:
    return ",".join(address(broker) for broker in brokers)


def produce(brokers: list[BrokerProcess], first: int, n: int) -> dict[int, bytes]:
    """With acks=all; offset to value, all acknowledged."""
    settings = {"bootstrap.servers": bootstrap(brokers), "acks": "all", "enable.idempotence": True}
    producer = Producer(settings | {"message.timeout.ms": 120_000, "log_level": 0})
    acked: dict[int, bytes] = {}
    failed: list[object] = []

    def told(error: object, message: object) -> None:
        if error:
            failed.append(error)
        else:
            acked[message.offset()] = message.value()  # type: ignore[attr-defined]

    for number in range(first, first + n):
        producer.produce(TOPIC, f"value-{number}".encode(), on_delivery=told)
    assert producer.flush(150) == 0
    assert failed == []
    return acked


def coordinator_of(broker: BrokerProcess, group: str) -> int | None:
    """Who coordinates a group; None while nobody does."""
    connection = ModernConnection("127.0.0.1", broker.modern_port or 0, client_id="test", timeout_s=20)
    try:
        answer = connection.ask(ApiKey.FIND_COORDINATOR, 2, Struct(key=group, key_type=0))
        return None if answer.error else int(answer.node)
    finally:
        connection.close()


def log_of(broker: BrokerProcess) -> Path:
    return broker.log_dir / ".modern" / "logs" / f"{TOPIC}-0"


def values_of(broker: BrokerProcess) -> dict[int, bytes | None]:
    return {
        record.offset: record.value
        for header, batch in batches_of(log_of(broker))
        for record in decode_records(batch, header, lambda codec, data: data)
    }


def test_a_leader_dies_and_nothing_acknowledged_is_missing(cluster: list[BrokerProcess]) -> None:
    """kill -9 of the leader: another in sync leads, the producer sees no error, every acknowledged record is there."""
    acked = produce(cluster, 0, 300)
    cluster[0].kill()
    acked |= produce(cluster[1:], 300, 300)
    now = seen(address(cluster[1]), TOPIC)
    assert now is not None and now.leader in (1, 2) and 0 not in now.isr
    cluster[0].restart()
    until(lambda: seen(address(cluster[1]), TOPIC) == Seen(now.leader, EVERYONE), "who died is in sync again")
    acked |= produce(cluster, 600, 100)

    assert len(acked) == 700
    logs = [batches_of(log_of(broker)) for broker in cluster]
    assert logs[0] == logs[1] == logs[2]
    stored = values_of(cluster[0])
    assert {offset: stored.get(offset) for offset in acked} == acked


def test_a_broker_that_stops_hands_over_first(cluster: list[BrokerProcess]) -> None:
    """An orderly stop moves the leadership before the port closes: whoever asks next is told of another leader."""
    acked = produce(cluster, 0, 50)
    assert cluster[0].stop() == 0
    now = seen(address(cluster[1]), TOPIC)
    assert now is not None and now.leader in (1, 2) and 0 not in now.isr
    acked |= produce(cluster[1:], 50, 50)
    stored = values_of(cluster[now.leader])
    assert {offset: stored.get(offset) for offset in acked} == acked


def test_a_commit_outlives_its_coordinator(cluster: list[BrokerProcess]) -> None:
    """__consumer_offsets has three replicas: who coordinates next knows what was committed (issue 26.4)."""
    group = {"group.id": "readers", "log_level": 0, "session.timeout.ms": 60_000}
    place = TopicPartition(TOPIC, 0, 7)
    before = Consumer(group | {"bootstrap.servers": bootstrap(cluster)})
    (committed,) = before.commit(offsets=[place], asynchronous=False) or [None]
    assert committed is not None and committed.error is None
    before.close()
    first = until(lambda: str(coordinator_of(cluster[1], "readers")), "there is a coordinator")
    victim = cluster[int(first)]
    left = [broker for broker in cluster if broker is not victim]
    victim.kill()
    until(lambda: coordinator_of(left[0], "readers") not in (None, int(first)), "another coordinates", timeout_s=90)
    after = Consumer(group | {"bootstrap.servers": bootstrap(left)})
    (found,) = after.committed([TopicPartition(TOPIC, 0)], timeout=90)
    after.close()
    assert found.offset == 7
