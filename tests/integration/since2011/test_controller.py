"""Three brokers and their controller: a replicated topic through its whole life (issue 26 point 3)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import click
import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from kafka2011.testing import BrokerProcess
from since2011.cli.replicas import elect, reassign
from since2011.cli.topics import topics
from tests.integration.since2011.replicas import brokers_seen, seen
from tests.waiting import until

SESSION_MS = 4_000


@pytest.fixture
def brokers(zk_connect: str) -> Iterator[dict[int, BrokerProcess]]:
    """Brokers 1, 2 and 3, each of which sees all."""
    options = {"modern.port": 0, "zk.connect": zk_connect, "zk.sessiontimeout.ms": SESSION_MS, "port.access": "off"}
    with ExitStack() as stack:
        started = {n: stack.enter_context(BrokerProcess(options=options | {"brokerid": n})) for n in (1, 2, 3)}
        until(lambda: all(brokers_seen(address(one)) == {1, 2, 3} for one in started.values()), "each sees all")
        yield started


def address(broker: BrokerProcess) -> str:
    return f"127.0.0.1:{broker.modern_port}"


def leader(broker: BrokerProcess) -> int | None:
    """Of the first partition, as this broker tells it."""
    now = seen(address(broker), "t")
    return None if now is None else now.leader


def produce(bootstrap: str, first: int, n: int = 100) -> None:
    """With acks=all, each acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "message.timeout.ms": 60_000})
    failed: list[object] = []
    for number in range(first, first + n):
        told = lambda error, _: failed.append(error) if error else None  # noqa: E731
        producer.produce("t", str(number).encode(), partition=0, on_delivery=told)
    assert producer.flush(90) == 0
    assert failed == []


def read(bootstrap: str, n: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[int] = []
    while len(found) < n:
        message = consumer.poll(60)
        assert message is not None and message.error() is None, f"{len(found)} records came"
        found.append(int(message.value()))
    consumer.close()
    return found


def run(command: click.Command, *words: str, at: BrokerProcess) -> str:
    """What a command prints, asked of this broker."""
    result = CliRunner().invoke(command, [*words, "--modern", address(at)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def described(broker: BrokerProcess, *options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(run(topics, "describe", "t", "--json", *options, at=broker))
    return rows


def listed(broker: BrokerProcess) -> set[str]:
    return {row["topic"] for row in json.loads(run(topics, "list", "--json", at=broker))}


def controllers(brokers: dict[int, BrokerProcess]) -> list[int]:
    """Those that say they are in office."""
    line = "kafka2011_controller_active_controller_count 1.0"
    return [n for n, one in brokers.items() if line in one.http("/metrics")]


def test_the_life_of_a_replicated_topic(brokers: dict[int, BrokerProcess]) -> None:
    """Create, kill the leader, elect, come back, preferred election, move, delete: nothing acknowledged is lost."""
    everywhere = ",".join(address(one) for one in brokers.values())
    until(lambda: len(controllers(brokers)) == 1, "one is in office")
    run(topics, "create", "t", "--partitions", "3", "--replicas", "3", at=brokers[2])
    until(lambda: [row["leader"] for row in described(brokers[3])].count("none") == 0, "each partition is led")
    rows = described(brokers[3])
    assert sorted(row["replicas"][0] for row in rows) == [1, 2, 3]
    until(lambda: described(brokers[3], "--under-replicated-partitions") == [], "all are in sync")
    victim: int = rows[0]["replicas"][0]
    others = [n for n in brokers if n != victim]
    produce(everywhere, 0)

    brokers[victim].kill()
    until(lambda: leader(brokers[others[0]]) in others, "another leads")
    until(lambda: len(described(brokers[others[0]], "--under-replicated-partitions")) == 3, "it is told of")
    produce(everywhere, 100)
    until(lambda: len(controllers({n: brokers[n] for n in others})) == 1, "one of them is in office")

    brokers[victim].restart()
    until(lambda: described(brokers[victim], "--under-replicated-partitions") == [], "all are in sync again")
    run(elect, at=brokers[victim])
    until(lambda: leader(brokers[victim]) == victim, "the first leads again")
    produce(everywhere, 200)

    run(reassign, "t:0", "--to", str(others[1]), "--wait", "60", at=brokers[victim])
    until(lambda: leader(brokers[victim]) == others[1], "it has moved")
    assert read(everywhere, 300) == list(range(300))
    run(reassign, "t:0", "--replicas", "3", "--wait", "60", at=brokers[victim])
    until(lambda: described(brokers[others[0]], "--under-replicated-partitions") == [], "all are in sync again")

    run(topics, "delete", "t", "--yes", at=brokers[others[0]])
    until(lambda: all("t" not in listed(one) for one in brokers.values()), "nobody knows it")
