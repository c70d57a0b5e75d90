"""A real 3.9 broker and ours in one cluster: each leads what the other follows (issue 26, must show 1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafka2011.testing import BrokerProcess
from tests.integration.since2011.replicas import Seen, batches_of, brokers_seen, seen
from tests.interop.since2011.real_broker import RealBroker
from tests.interop.since2011.real_kafka import jars
from tests.waiting import until

REAL, OURS = 1, 2
TOPICS = ("led-by-real", "led-by-ours")
PROTOCOL = {
    "inter_broker_protocol_version": "2.6",
    "log_message_format_version": "2.6",
    "auto_leader_rebalance_enable": "false",
    "replica_lag_time_max_ms": 6000,
}


@pytest.fixture(autouse=True)
def real_kafka() -> None:
    jars()


def ours(connect: str, log_dir: Path) -> BrokerProcess:
    options = {"brokerid": OURS, "modern.port": 0, "zk.connect": connect, "log.initial.task.delay.ms": 3_600_000}
    return BrokerProcess(log_dir, options=options | {"port.access": "off", "replica.lag.time.max.ms": 6000})


def create(real: RealBroker, topic: str, assignment: str) -> None:
    real.tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", topic, "--replica-assignment", assignment)


def produce(bootstrap: str, topic: str, n: int, first: int = 0) -> None:
    """With acks=all; each must be acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "message.timeout.ms": 60_000})
    failed: list[object] = []
    for number in range(first, first + n):
        producer.produce(topic, f"value-{number}".encode(), on_delivery=lambda e, _: failed.append(e) if e else None)
    assert producer.flush(90) == 0
    assert failed == []


def test_a_real_broker_follows_ours_and_ours_follows_it(zk_connect: str, tmp_path: Path) -> None:
    """Real as controller over ours, leader and follower; acks=all both ways; logs identical batch by batch."""
    real = RealBroker(f"{zk_connect}/modern", tmp_path / "real", broker_id=REAL, **PROTOCOL)
    with real, ours(zk_connect, tmp_path / "ours") as broker:
        bootstrap = f"127.0.0.1:{broker.modern_port}"
        until(lambda: brokers_seen(bootstrap) == {REAL, OURS}, "both brokers are there")
        create(real, "led-by-real", f"{REAL}:{OURS}")
        create(real, "led-by-ours", f"{OURS}:{REAL}")
        both = f"{bootstrap},{real.bootstrap}"
        for topic, leader in (("led-by-real", REAL), ("led-by-ours", OURS)):
            whole = Seen(leader, frozenset({REAL, OURS}))
            until(lambda t=topic, w=whole: seen(bootstrap, t) == w, f"{topic} is in sync")
            produce(both, topic, 500)
            assert seen(bootstrap, topic) == whole
        broker.kill()
        alone, whole = Seen(REAL, frozenset({REAL})), Seen(REAL, frozenset({REAL, OURS}))
        for topic in TOPICS:
            until(lambda t=topic: seen(real.bootstrap, t) == alone, f"the real broker leads {topic}", timeout_s=60)
            produce(real.bootstrap, topic, 100, 500)
        broker.restart()
        both = f"127.0.0.1:{broker.modern_port},{real.bootstrap}"
        for topic in TOPICS:
            until(lambda t=topic: seen(real.bootstrap, t) == whole, f"ours is in sync in {topic}", timeout_s=60)
            produce(both, topic, 100, 600)
        assert not [line for line in real.output.splitlines() if " ERROR " in line]
    for topic in TOPICS:
        there = batches_of(tmp_path / "real" / "logs" / f"{topic}-0")
        here = batches_of(tmp_path / "ours" / ".modern" / "logs" / f"{topic}-0")
        assert here == there
        assert sum(header.n_records for header, _ in here) == 700
