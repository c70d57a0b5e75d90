"""Real brokers in a real ZooKeeper: they register, announce, come back and leave."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.types import BrokerAddress, BrokerPartition
from kafka2011.wire import encode_set
from tests.integration.consumers.line import Line
from tests.waiting import until
from zk_registry.brokers import BrokerRegistry
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.operations import Create, NoAuth, RegistryError
from zk_registry.router import ZooKeeperRouter
from zk_registry.session import ZooKeeperSession

P = BrokerPartition
SHORT = {"zk.sessiontimeout.ms": 2000}


def options(connect: str, broker_id: int, **more: object) -> dict[str, object]:
    return {
        "zk.connect": connect,
        "brokerid": broker_id,
        "num.partitions": 2,
        "log.flush.interval": 1,
        # Longer than any pause of a busy machine; tests that wait for an expiry ask for SHORT.
        "zk.sessiontimeout.ms": 30_000,
    } | more


def produce(broker: BrokerProcess, topic: str) -> None:
    with BrokerConnection(broker.host, broker.port) as connection:
        connection.produce(topic, 1, encode_set([b"hello"]))
        until(lambda: connection.offsets(topic, 1) != [0], "the message can be read")


def kafka2011(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kafka2011", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_broker_registers_announces_and_leaves(zk_connect: str, tmp_path: Path) -> None:
    """Id at the start, a topic with all partitions at its first message, everything gone at SIGTERM (§3.2)."""
    connect = f"{zk_connect}/not/there/yet"
    secret = tmp_path / "credential"
    secret.write_text("broker:secret\n")
    secret.chmod(0o600)
    first = BrokerProcess(options=options(connect, 0, **{"zk.credential.file": secret}))
    with first, ZooKeeperSession(connect) as session:
        registry, router = BrokerRegistry(session), ZooKeeperRouter(connect)
        assert registry.brokers() == {0: BrokerAddress(0, first.host, first.port)}
        assert registry.topics() == [] and list(router.partitions("clicks")) == [P(0, 0)]

        produce(first, "clicks")
        until(lambda: registry.partitions("clicks") == [P(0, 0), P(0, 1)], "the topic is announced")
        until(lambda: list(router.partitions("clicks")) == [P(0, 0), P(0, 1)], "the producer's router has noticed")
        with pytest.raises(NoAuth):
            session.perform(Create("/brokers/ids/9", b"x-1:evil:1"))

        listed = kafka2011("brokers", "-z", connect, "--json")
        assert json.loads(listed.stdout) == [{"id": 0, "host": first.host, "port": first.port, "topics": {"clicks": 2}}]
        tree = {node["path"]: node for node in json.loads(kafka2011("zk", "tree", "-z", connect, "--json").stdout)}
        assert tree["/brokers/topics/clicks/0"]["ephemeral"] and not tree["/brokers/topics/clicks"]["ephemeral"]
        assert tree["/brokers/topics/clicks/0"]["value"] == "2"

        # Its session would live for 30 s more: it is gone because it left.
        assert first.stop() == 0
        assert registry.brokers() == {} and registry.partitions("clicks") == []
        until(lambda: router.brokers() == [], "the router has noticed that, too")
        router.close()


def test_a_broker_restarted_at_once_waits_for_its_old_session(zk_connect: str) -> None:
    """kill -9 and start: the node of the last life is waited out, then id and old topics are there again (§3.2)."""
    with BrokerProcess(options=options(zk_connect, 3, **SHORT)) as broker, ZooKeeperSession(zk_connect) as session:
        produce(broker, "clicks")
        registry = BrokerRegistry(session)
        until(lambda: registry.partitions("clicks"), "the topic is announced")
        before = broker.port

        broker.kill()
        broker.restart()

        until(lambda: registry.brokers() == {3: BrokerAddress(3, broker.host, before)}, "it is registered again")
        until(lambda: registry.partitions("clicks") == [P(3, 0), P(3, 1)], "the topics on disk are announced")


def test_the_second_broker_with_an_id_is_refused(zk_connect: str) -> None:
    """An id in use: the newcomer ends with one line that names the holder; the holder stays (§3.2)."""
    with BrokerProcess(options=options(zk_connect, 5)) as holder, ZooKeeperSession(zk_connect) as session:
        with pytest.raises(RuntimeError, match=f"broker id 5 is taken.*{holder.host}:{holder.port}"):
            BrokerProcess(options=options(zk_connect, 5)).start()
        assert BrokerRegistry(session).brokers()[5].port == holder.port


def test_a_broker_frozen_past_its_session_registers_again(zk_connect: str) -> None:
    """A broker that was away for longer than its session is back in the registry, with its topics (§3.2)."""
    with BrokerProcess(options=options(zk_connect, 1, **SHORT)) as broker, ZooKeeperSession(zk_connect) as session:
        registry = BrokerRegistry(session)
        produce(broker, "clicks")
        until(lambda: registry.partitions("clicks"), "the topic is announced")
        broker.pause()
        until(lambda: registry.brokers() == {}, "its session has expired")
        broker.resume()

        until(lambda: registry.brokers() and len(registry.partitions("clicks")) == 2, "all of it is registered again")
        until(lambda: broker.state()["plugins"]["zookeeper"]["registered"], "its own view agrees")


def test_a_broker_serves_while_zookeeper_is_away() -> None:
    """Without ZooKeeper messages flow; what happened meanwhile is registered when it is back (§3.2)."""
    more = {"zk.sessiontimeout.ms": 9000}
    with EmbeddedZooKeeper() as zookeeper, BrokerProcess(options=options(zookeeper.connect, 0, **more)) as broker:
        zookeeper.kill()
        until(lambda: broker.state()["plugins"]["zookeeper"]["state"] != "connected", "the broker has noticed")
        produce(broker, "meanwhile")
        zookeeper.restart()

        with ZooKeeperSession(zookeeper.connect) as session:
            registry = BrokerRegistry(session)
            until(lambda: registered(registry, "meanwhile"), "the broker is there with its new topic")


def test_a_broker_whose_zookeeper_client_dies_gets_a_new_one(zookeeper: EmbeddedZooKeeper, zk_connect: str) -> None:
    """kazoo's thread dies of an answer nobody waits for: that is told, and another session registers the broker;
    while that cannot be, /healthz says why (Issue 19 A3, B9)."""
    with Line(zookeeper.servers[0].port) as line:
        connect = f"{line.address}/{zk_connect.partition('/')[2]}"
        more = {**SHORT, "modern.port": 0}
        with BrokerProcess(options=options(connect, 0, **more)) as broker, ZooKeeperSession(zk_connect) as session:
            registry = BrokerRegistry(session)
            line.garble()
            produce(broker, "first")
            until(lambda: registered(registry, "first"), "the broker is there with its new topic")
            assert "client_died" in broker.output and broker.http("/healthz").startswith("ok")

            line.garble()
            produce(broker, "second")
            until(lambda: broker.output.count("client_died") >= 2, "a client of its died again")
            line.cut()
            until(lambda: "zookeeper: " in broker.http("/healthz"), "/healthz says why")


def test_no_zookeeper_at_the_start_is_one_line() -> None:
    """A broker that cannot reach ZooKeeper at all says so and where; so does the command that looks (§3.2)."""
    more = {"zk.connectiontimeout.ms": 300}
    with pytest.raises(RuntimeError, match=r"no ZooKeeper answers at 127\.0\.0\.1:1 "):
        BrokerProcess(options=options("127.0.0.1:1", 0, **more)).start()
    looked = kafka2011("zk", "tree", "-z", "127.0.0.1:1")
    assert looked.returncode == 1 and looked.stderr.startswith("kafka2011: no ZooKeeper answers at 127.0.0.1:1")
    assert len(looked.stderr.splitlines()) == 1 and looked.stdout == ""


def registered(registry: BrokerRegistry, topic: str) -> bool:
    try:
        return list(registry.brokers()) == [0] and len(registry.partitions(topic)) == 2
    except RegistryError:
        return False
