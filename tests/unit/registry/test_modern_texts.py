"""The nodes of ZooKeeper-era Kafka, byte for byte: what a real 3.9.1 broker wrote, read and written again."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zk_registry.modern import paths, texts
from zk_registry.modern.texts import Assignment, BrokerEntry, Endpoint, PartitionState

BROKER = (
    b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
    b'"endpoints":["PLAINTEXT://127.0.0.1:45363"],"jmx_port":-1,"port":45363,"host":"127.0.0.1","version":5,'
    b'"timestamp":"1795017137765"}'
)
TWO_LISTENERS = (
    b'{"listener_security_protocol_map":{"INTERNAL":"PLAINTEXT","CLIENT":"SSL"},'
    b'"endpoints":["INTERNAL://127.0.0.1:24201","CLIENT://127.0.0.1:24301"],"rack":"r1","jmx_port":-1,'
    b'"port":24201,"host":"127.0.0.1","version":4,"timestamp":"1794985285859"}'
)
TOPIC = (
    b'{"partitions":{"0":[1],"1":[1],"2":[1]},"topic_id":"kDZ7XIn2Q8Sm40oYIF-FOg","adding_replicas":{},'
    b'"removing_replicas":{},"version":3}'
)
MOVING = b'{"partitions":{"0":[3,1,2],"1":[3,1]},"adding_replicas":{"0":[1]},"removing_replicas":{"0":[2]},"version":3}'
STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
CONFIG = (
    b'{"version":1,"config":{"cleanup.policy":"compact,delete","min.insync.replicas":"1","retention.ms":"86400000",'
    b'"segment.bytes":"1048576"}}'
)


def test_a_brokers_node_is_a_real_brokers() -> None:
    """A broker registers in the bytes of Kafka 3.9 (docs/zookeeper.md)."""
    entry = BrokerEntry((Endpoint("PLAINTEXT", "127.0.0.1", 45363),), started_ms=1795017137765)
    assert entry.encode() == BROKER
    assert texts.parse_broker(BROKER) == entry


def test_listeners_and_racks_are_read() -> None:
    """A broker's listeners, their protocols and its rack are understood (docs/zookeeper.md)."""
    entry = texts.parse_broker(TWO_LISTENERS)
    assert entry.endpoints == (
        Endpoint("INTERNAL", "127.0.0.1", 24201, "PLAINTEXT"),
        Endpoint("CLIENT", "127.0.0.1", 24301, "SSL"),
    )
    assert entry.rack == "r1"
    assert entry.version == 4
    assert texts.parse_broker(entry.encode()) == replace(entry, version=5), "written anew it has our own version"


def test_the_first_brokers_of_08_are_read() -> None:
    """Version 1, host and port only, is a plain endpoint (docs/zookeeper.md)."""
    entry = texts.parse_broker(b'{"jmx_port":-1,"timestamp":"1","host":"h","version":1,"port":9092}')
    assert entry.endpoints == (Endpoint("PLAINTEXT", "h", 9092),)


def test_a_topics_node_is_a_real_brokers() -> None:
    """A topic stands in ZooKeeper in the bytes of Kafka 3.9, its id as 22 characters (docs/zookeeper.md)."""
    topic = texts.parse_assignment(TOPIC)
    assert topic.partitions == {0: (1,), 1: (1,), 2: (1,)}
    assert topic.encode() == TOPIC
    moving = texts.parse_assignment(MOVING)
    assert (moving.adding, moving.removing, moving.topic_id) == ({0: (1,)}, {0: (2,)}, None)
    assert moving.encode() == MOVING


def test_a_partitions_state_is_a_real_controllers() -> None:
    """Leader, epoch and in-sync replicas stand in the bytes of Kafka 3.9 (docs/zookeeper.md)."""
    state = PartitionState(leader=1, leader_epoch=0, isr=(1,), controller_epoch=1)
    assert state.encode() == STATE
    assert texts.parse_state(STATE) == state
    lossy = PartitionState(3, 3, (3,), 2, recovering=True)
    assert lossy.encode().endswith(b'"isr":[3],"leader_recovery_state":1}')
    assert texts.parse_state(lossy.encode()) == lossy


def test_the_other_texts_are_real_brokers() -> None:
    """Settings, notices, the cluster's id, the controller and id blocks have Kafka's bytes (docs/zookeeper.md)."""
    assert texts.encode_config(texts.parse_config(CONFIG)) == CONFIG
    assert texts.encode_config({}) == b'{"version":1,"config":{}}'
    assert texts.encode_change("topics/t") == b'{"version":2,"entity_path":"topics/t"}'
    assert texts.parse_change(b'{"version":1,"entity_type":"topics","entity_name":"t"}') == "topics/t"
    cluster = b'{"version":"1","id":"Jw6vqetcTuyzNP_BE3udRQ"}'
    assert texts.encode_cluster_id(texts.parse_cluster_id(cluster)) == cluster
    controller = b'{"version":2,"brokerid":1,"timestamp":"1795017138062","kraftControllerEpoch":-1}'
    assert texts.encode_controller(1, 1795017138062) == controller
    assert texts.parse_controller(controller) == 1
    block = b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
    assert texts.encode_producer_ids(1, 0) == block
    assert texts.parse_producer_ids(block) == 1000
    assert texts.parse_producer_ids(b"") == 0


def test_names_of_users_are_escaped_as_kafka_does() -> None:
    """A user's name that could not stand in a path is escaped; the default keeps its brackets (Kafka's Sanitizer)."""
    assert paths.sanitized("CN=a b*/c") == "CN%3Da%20b%2A%2Fc"
    assert paths.unsanitized(paths.sanitized("CN=a b*/c")) == "CN=a b*/c"
    assert paths.sanitized("<default>") == "<default>"


@given(st.uuids())
def test_ids_come_back(number: UUID) -> None:
    """Every id survives its 22 characters (docs/zookeeper.md)."""
    text = texts.encode_id(number)
    assert len(text) == 22
    assert texts.decode_id(text) == number


REAL = st.sampled_from([BROKER, TOPIC, STATE, CONFIG])


@given(st.binary(max_size=60) | REAL, st.integers(0, 200), st.binary(max_size=3))
def test_damage_is_named(value: bytes, at: int, put: bytes) -> None:
    """Whatever stands in a node, reading it gives a value or a ValueError, nothing else."""
    damaged = value[:at] + put + value[at + 1 :]
    for parse in (
        texts.parse_broker,
        texts.parse_assignment,
        texts.parse_state,
        texts.parse_config,
        texts.parse_change,
        texts.parse_cluster_id,
        texts.parse_controller,
        texts.parse_producer_ids,
    ):
        try:
            parse(damaged)
        except ValueError:
            pass


@pytest.mark.parametrize("text", ["", "x", "a" * 23, "ä" * 22, "****"])
def test_ids_that_are_none(text: str) -> None:
    """A text that is no id is refused as such."""
    with pytest.raises(ValueError, match="22 characters"):
        texts.decode_id(text)


def test_an_assignment_without_id_is_an_old_brokers() -> None:
    """Without a topic id the text is that of inter-broker protocol 2.6 (docs/zookeeper.md)."""
    text = b'{"partitions":{"0":[2,3],"1":[3,1]},"adding_replicas":{},"removing_replicas":{},"version":3}'
    assert Assignment({0: (2, 3), 1: (3, 1)}).encode() == text
