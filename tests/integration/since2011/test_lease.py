"""A leader that ZooKeeper does not answer: what it acknowledges, and what it does not (design D22, issue 26.1)."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from kafka2011.testing import BrokerProcess
from since2011.wire.codec import ApiKey
from since2011.wire.error_codes import ErrorCode
from tests.integration.since2011.replicas import Seen, brokers_seen, seen
from tests.integration.since2011.wire_client import WireClient, produce_body
from tests.unit.since2011.server.test_batches import built
from tests.waiting import until
from zk_registry.embedded import EmbeddedZooKeeper

BOTH = frozenset({0, 1})


def test_without_zookeeper_only_what_replicas_confirm_is_acknowledged(tmp_path: Path) -> None:
    """acks=1 ends before the session can have ended; acks=all goes on, and a partition with one replica; all return."""
    with ExitStack() as stack:
        zookeeper = stack.enter_context(EmbeddedZooKeeper())
        options = {"modern.port": 0, "zk.connect": zookeeper.connect, "port.access": "off"}
        brokers = [
            stack.enter_context(BrokerProcess(tmp_path / f"broker-{n}", options | {"brokerid": n})) for n in (0, 1)
        ]
        addresses = [f"127.0.0.1:{broker.modern_port}" for broker in brokers]
        until(lambda: all(brokers_seen(each) == BOTH for each in addresses), "both see both")
        admin = AdminClient({"bootstrap.servers": ",".join(addresses)})
        two, one = NewTopic("two", 1, replica_assignment=[[0, 1]]), NewTopic("one", 1, replica_assignment=[[0]])
        for made in admin.create_topics([two, one]).values():
            made.result(60)
        until(lambda: seen(addresses[1], "two") == Seen(0, BOTH), "both are in sync")
        until(lambda: seen(addresses[0], "one") == Seen(0, frozenset({0})), "the other topic is led")

        def produced(topic: str, acks: int) -> int:
            with WireClient(brokers[0].modern_port or 0) as client:
                body = produce_body(topic, built([b"v"]), acks=acks)
                return int(client.ask(ApiKey.PRODUCE, 7, body).topics[0].partitions[0].error)

        assert [produced("two", 1), produced("two", -1), produced("one", 1)] == [0, 0, 0]
        zookeeper.pause()
        try:
            refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
            until(lambda: produced("two", 1) == refused, "acks=1 is refused")
            assert [produced("two", -1), produced("one", 1)] == [0, 0]
        finally:
            zookeeper.resume()
        until(lambda: produced("two", 1) == 0 or produced_elsewhere(brokers[1]), "acks=1 is taken again", timeout_s=120)


def produced_elsewhere(broker: BrokerProcess) -> bool:
    """The other broker may have been elected meanwhile."""
    with WireClient(broker.modern_port or 0) as client:
        answer = client.ask(ApiKey.PRODUCE, 7, produce_body("two", built([b"v"]), acks=1))
        return not answer.topics[0].partitions[0].error
