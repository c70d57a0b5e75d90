"""Our controller over a real 3.9 broker and ours, asked by Kafka's own tools (issue 26, must show 1)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafka2011.testing import BrokerProcess
from tests.integration.since2011.replicas import Seen, batches_of, brokers_seen, seen
from tests.interop.since2011.real_broker import RealBroker
from tests.interop.since2011.real_kafka import jars, run_tool
from tests.interop.since2011.test_replication import PROTOCOL
from tests.waiting import until

FIRST, SECOND, REAL = 1, 2, 3


@pytest.fixture(autouse=True)
def real_kafka() -> None:
    jars()


def ours(connect: str, log_dir: Path, broker_id: int) -> BrokerProcess:
    options = {"brokerid": broker_id, "modern.port": 0, "zk.connect": connect, "port.access": "off"}
    return BrokerProcess(log_dir, options=options | {"auto.leader.rebalance.enable": False})


def produce(bootstrap: str, n: int, first: int) -> None:
    """With acks=all; each must be acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "message.timeout.ms": 60_000})
    failed: list[object] = []
    for number in range(first, first + n):
        producer.produce("t", f"value-{number}".encode(), on_delivery=lambda e, _: failed.append(e) if e else None)
    assert producer.flush(90) == 0
    assert failed == []


@pytest.mark.timeout(600)
def test_kafkas_tools_and_a_real_broker_under_our_controller(zk_connect: str, tmp_path: Path) -> None:
    """kafka-topics, -leader-election, -reassign-partitions; the real leader killed, back, moved away; same logs."""
    real = RealBroker(f"{zk_connect}/modern", tmp_path / "real", broker_id=REAL, **PROTOCOL)
    with ours(zk_connect, tmp_path / "1", FIRST) as one, ours(zk_connect, tmp_path / "2", SECOND) as two:
        until(lambda: "active_controller_count 1.0" in one.http("/metrics"), "the first is in office")
        with real:
            asked = f"127.0.0.1:{one.modern_port}"
            every = f"{asked},127.0.0.1:{two.modern_port},{real.bootstrap}"
            until(lambda: brokers_seen(asked) == {FIRST, SECOND, REAL}, "all three are there")

            def tool(name: str, *words: str) -> str:
                return run_tool(f"org.apache.kafka.tools.{name}", "--bootstrap-server", asked, *words, cwd=tmp_path)

            whole = Seen(REAL, frozenset({FIRST, SECOND, REAL}))
            tool("TopicCommand", "--create", "--topic", "t", "--replica-assignment", f"{REAL}:{SECOND}:{FIRST}")
            until(lambda: seen(asked, "t") == whole, "the real broker leads, all are in sync", timeout_s=120)
            produce(every, 300, 0)
            assert real._process is not None
            real._process.kill()
            real._process.wait()
            until(lambda: seen(asked, "t") == Seen(SECOND, frozenset({FIRST, SECOND})), "ours leads", timeout_s=120)
            produce(every, 100, 300)
            real.start()
            until(lambda: seen(asked, "t") == whole._replace(leader=SECOND), "the real one is in sync", timeout_s=120)
            elected = tool("LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
            assert "Successfully completed leader election (PREFERRED) for partitions t-0" in elected
            until(lambda: seen(asked, "t") == whole, "the real one leads again")
            produce(every, 100, 400)
            logs = [tmp_path / name / ".modern" / "logs" / "t-0" for name in ("1", "2")]
            until(lambda: all(n_records(log) == 500 for log in (*logs, real.logs / "t-0")), "each has everything")
            assert batches_of(logs[0]) == batches_of(logs[1]) == batches_of(real.logs / "t-0")

            plan = tmp_path / "plan.json"
            rows = [{"topic": "t", "partition": 0, "replicas": [FIRST, SECOND]}]
            plan.write_text(json.dumps({"version": 1, "partitions": rows}))
            words = ("--reassignment-json-file", str(plan))
            tool("reassign.ReassignPartitionsCommand", *words, "--execute")
            until(lambda: seen(asked, "t") == Seen(FIRST, frozenset({FIRST, SECOND})), "it has moved", timeout_s=120)
            verified = tool("reassign.ReassignPartitionsCommand", *words, "--verify")
            assert "Reassignment of partition t-0 is completed" in verified
            until(lambda: not (real.logs / "t-0").exists(), "the real broker has nothing left of it")
            tool("TopicCommand", "--delete", "--topic", "t")
            assert "t" not in tool("TopicCommand", "--list").split()
            assert not [line for line in real.output.splitlines() if " ERROR " in line]


def n_records(directory: Path) -> int:
    return sum(header.n_records for header, _ in batches_of(directory))
