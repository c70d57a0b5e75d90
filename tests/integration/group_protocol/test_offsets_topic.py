"""``__consumer_offsets`` is an ordinary modern topic: whoever leads a partition of it coordinates its groups (D20)."""

from __future__ import annotations

import struct
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set
from since2011.client.connection import ModernConnection
from since2011.topics.internal import OFFSETS_TOPIC, partition_of
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.group_records import GroupRecordType, decode_key, decode_value, encode_key, encode_value
from tests.integration.group_protocol.conftest import QUICK, fill
from tests.integration.group_protocol.failover import FailoverCluster
from tests.integration.group_protocol.test_durability import committed
from tests.interop.since2011.real_kafka import run_tool
from tests.waiting import until


def test_a_coordinator_that_is_away_is_waited_for(zk_connect: str, tmp_path: Path) -> None:
    """With one replica nobody takes a dead coordinator's groups over: 15 until it is back, then every acknowledged
    commit is there; never an old offset, never "nothing was committed" (design D20)."""
    with FailoverCluster(zk_connect, tmp_path) as cluster:
        groups = [cluster.group_of(1), cluster.group_of(2)]
        for number, group in enumerate(groups, 1):
            until(lambda n=number, g=group: cluster.commit(n, g, 7) == 0, "the commit is taken")  # type: ignore[misc]
        cluster.brokers[1].kill()
        until(lambda: cluster.find(groups[0], 2) == ErrorCode.COORDINATOR_NOT_AVAILABLE, "it is known to be away")

        assert cluster.commit(2, groups[0], 8) == ErrorCode.NOT_COORDINATOR
        assert cluster.fetch(2, groups[0])[0] == ErrorCode.NOT_COORDINATOR
        assert cluster.fetch(2, groups[1]) == (0, 7, "note"), "other groups go on"
        cluster.brokers[1].restart()
        until(lambda: cluster.find(groups[0], 2) == 0, "it is back")
        assert cluster.committed(1, groups[0]) == (7, "note")


def _ask(broker: BrokerProcess, key: ApiKey, version: int, body: Struct) -> Struct:
    connection = ModernConnection(broker.host, broker.modern_port or 0, client_id="t")
    try:
        return connection.ask(key, version, body)
    finally:
        connection.close()


def _commit(broker: BrokerProcess, group: str, offset: int) -> None:
    row = Struct(name="t", partitions=[Struct(index=0, offset=offset, metadata="note")])
    answer = _ask(broker, ApiKey.OFFSET_COMMIT, 7, Struct(group=group, member="", topics=[row]))
    assert answer.topics[0].partitions[0].error == 0


def test_clients_and_kafkas_tool_read_the_records(own_broker: BrokerProcess, tmp_path: Path) -> None:
    """confluent-kafka reads real records out of the topic, deletions as tombstones, and DumpLogSegments of Kafka 3.9
    reads our files with its offsets decoder (issue 25.6)."""
    fill(own_broker, "t")
    _commit(own_broker, "billing", 42)
    _commit(own_broker, "audit", 43)
    wanted = Struct(group="billing", topics=[Struct(name="t", partitions=[Struct(index=0)])])
    deleted = _ask(own_broker, ApiKey.OFFSET_DELETE, 0, wanted)
    gone = _ask(own_broker, ApiKey.DELETE_GROUPS, 1, Struct(groups=["audit", "nobody"]))
    assert (deleted.error, deleted.topics[0].partitions[0].error) == (0, 0)
    assert [(one.group, one.error) for one in gone.results] == [("audit", 0), ("nobody", ErrorCode.GROUP_ID_NOT_FOUND)]
    _commit(own_broker, "billing", 44)

    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{own_broker.modern_port}", "group.id": "looker"})
    consumer.assign([TopicPartition(OFFSETS_TOPIC, partition_of("billing"), 0)])
    seen: list[tuple[str, int | None]] = []

    def has_all() -> bool:
        for message in consumer.consume(10, 0.1):
            kind, key = decode_key(message.key())
            assert kind is GroupRecordType.OFFSET
            value = None if message.value() is None else decode_value(kind, message.value()).offset
            seen.append((key.group, value))
        return len(seen) >= 3

    until(has_all, "the records come")
    consumer.close()
    assert [each for each in seen if each[0] == "billing"] == [("billing", 42), ("billing", None), ("billing", 44)]
    own_broker.stop()
    directory = tmp_path / "data" / ".modern" / "logs" / f"{OFFSETS_TOPIC}-{partition_of('billing')}"
    file = "00000000000000000000.log"
    shown = run_tool("kafka.tools.DumpLogSegments", "--files", file, "--offsets-decoder", cwd=directory)
    assert "mismatch" not in shown
    assert shown.count('"group":"billing"') == 3, shown
    assert '"offset":44' in shown


def test_offsets_of_release_1_1_are_taken_over_once(tmp_path: Path) -> None:
    """The log of 2011 messages in which release 1.1 kept offsets is read at the first start, nothing is lost, and it is
    set aside; the topic's own records win afterwards (issue 25.6)."""
    old = tmp_path / "data" / ".modern" / "offsets"
    for group, offset in (("billing", 42), ("audit", 7)):
        key = encode_key(GroupRecordType.OFFSET, Struct(group=group, topic="t", partition=0))
        values = [
            encode_value(GroupRecordType.OFFSET, Struct(offset=n, leader_epoch=0, metadata="n", commit_ms=1 << 41))
            for n in (1, offset)
        ]
        payloads = [struct.pack(">qi", 0, len(key)) + key + struct.pack(">i", len(value)) + value for value in values]
        partition = old / f"{OFFSETS_TOPIC}-{partition_of(group)}"
        partition.mkdir(parents=True, mode=0o700)
        (partition / "00000000000000000000.kafka").write_bytes(encode_set(payloads))
    (tmp_path / "data").chmod(0o700)
    with BrokerProcess(tmp_path / "data", options=QUICK) as broker:
        fill(broker, "t")
        until(lambda: not old.exists(), "the old log is set aside")
        assert (committed(broker, "billing"), committed(broker, "audit")) == (42, 7)
        assert old.with_name("offsets.adopted").is_dir()
        _commit(broker, "billing", 43)
        broker.kill()
        broker.restart()
        assert (committed(broker, "billing"), committed(broker, "audit")) == (43, 7)
