"""Where partitions begin and end, by offset, time and epoch; and what admin tools ask of modern topics."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.testing import BrokerProcess
from since2011.client.admin import Admin
from since2011.wire.codec import NO_UUID, ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.records import Record, encode_records
from tests.integration.modern_topics.conftest import OPTIONS
from tests.integration.modern_topics.test_produce import produce
from tests.integration.since2011.wire_client import WireClient
from tests.unit.since2011.server.test_batches import built

T = 1_700_000_000_000


def stamped(*times: int) -> bytes:
    """A batch of records with these timestamps."""
    records = [Record(number, time, b"k", b"v") for number, time in enumerate(times)]
    return encode_records(records, base_offset=0)


def numbered(sequence: int) -> bytes:
    """A batch of one record of producer 5, stamped now: a producer of long ago is forgotten at a restart."""
    record = Record(0, SYSTEM_CLOCK.wall_ms(), b"k", b"v")
    return encode_records([record], base_offset=0, producer_id=5, producer_epoch=0, base_sequence=sequence)


def offset(client: WireClient, topic: str, timestamp: int, *, version: int = 9, **more: int) -> Struct:
    """The partition's answer to one ListOffsets."""
    rows = [Struct(**({"index": 0, "timestamp": timestamp, "leader_epoch": -1} | more))]
    body = Struct(replica_id=-1, isolation=0, topics=[Struct(name=topic, partitions=rows)])
    return client.ask(ApiKey.LIST_OFFSETS, version, body).topics[0].partitions[0]


@pytest.fixture
def filled(client: WireClient, topic: str) -> str:
    """A topic of five records in two batches, their times not in order."""
    produce(client, topic, stamped(T, T + 50, T + 20))
    produce(client, topic, stamped(T + 100, T + 60))
    return topic


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (-1, (5, -1)),
        (-2, (0, -1)),
        (-3, (3, T + 100)),
        (-4, (0, -1)),
        (-5, (-1, -1)),
        (0, (0, T)),
        (T + 1, (1, T + 50)),
        (T + 51, (3, T + 100)),
        (T + 101, (-1, -1)),
    ],
)
def test_offsets_by_time(client: WireClient, filled: str, timestamp: int, found: tuple[int, int]) -> None:
    """Sheet §6.1: ends, largest timestamp, and the first record at or after a time, to the record."""
    answer = offset(client, filled, timestamp)

    assert (answer.error, answer.offset, answer.timestamp) == (0, *found)


@pytest.mark.parametrize(
    ("timestamp", "version", "more", "error"),
    [
        (-3, 6, {}, ErrorCode.UNSUPPORTED_VERSION),
        (-4, 7, {}, ErrorCode.UNSUPPORTED_VERSION),
        (-9, 9, {}, ErrorCode.UNSUPPORTED_VERSION),
        (-1, 9, {"leader_epoch": 4}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-1, 9, {"index": 3}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_bad_questions_are_named(
    client: WireClient, filled: str, timestamp: int, version: int, more: dict[str, int], error: ErrorCode
) -> None:
    """Sheet §6.1: times a version does not know are 35, other leaderships 75, other partitions 3."""
    assert offset(client, filled, timestamp, version=version, **more).error == error


@pytest.mark.parametrize("replica", [0, 7])
def test_who_is_no_replica_is_a_reader(client: WireClient, filled: str, replica: int) -> None:
    """kafka-python asks as replica 0, which is this very broker: real Kafka answers, and so do we (must show 3)."""
    rows = [Struct(index=0, timestamp=-1)]
    body = Struct(replica_id=replica, isolation=0, topics=[Struct(name=filled, partitions=rows)])
    (one,) = client.ask(ApiKey.LIST_OFFSETS, 9, body).topics[0].partitions
    assert (one.error, one.offset) == (0, 5)


def test_a_partition_named_twice_is_refused(client: WireClient, filled: str) -> None:
    """Sheet §6.1: a duplicate partition in the request is INVALID_REQUEST, for both."""
    rows = [Struct(index=0, timestamp=-1)] * 2
    body = Struct(replica_id=-1, isolation=0, topics=[Struct(name=filled, partitions=rows)])
    found = client.ask(ApiKey.LIST_OFFSETS, 5, body).topics[0].partitions

    assert [one.error for one in found] == [ErrorCode.INVALID_REQUEST] * 2


def test_where_an_epoch_ended(client: WireClient, filled: str) -> None:
    """Sheet §2.4: the current leadership ends at the end of the log; of a later one nothing is known."""

    def end(epoch: int) -> tuple[int, int, int]:
        rows = [Struct(index=0, current_epoch=-1, epoch=epoch)]
        body = Struct(replica_id=-2, topics=[Struct(name=filled, partitions=rows)])
        one = client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, body).topics[0].partitions[0]
        return one.error, one.epoch, one.end_offset

    assert (end(0), end(7)) == ((0, 0, 5), (0, -1, -1))


def test_deleted_records_are_gone_for_readers(client: WireClient, filled: str) -> None:
    """Sheet §5: the log begins later, inside a batch too; what lies beyond the end, or before -1, is refused."""

    def delete(upto: int) -> tuple[int, int]:
        body = Struct(topics=[Struct(name=filled, partitions=[Struct(index=0, offset=upto)])], timeout_ms=1000)
        one = client.ask(ApiKey.DELETE_RECORDS, 2, body).topics[0].partitions[0]
        return one.error, one.low_watermark

    assert [delete(6), delete(-2)] == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1)] * 2
    assert delete(1) == (0, 1) and offset(client, filled, -2).offset == 1
    assert client.fetch(filled, 0).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.fetch(filled, 1).log_start == 1 and client.fetch(filled, 1).records[:8] == bytes(8)
    assert delete(-1) == (0, 5) and client.fetch(filled, 5).records == b""


def test_what_is_known_of_producers(client: WireClient, topic: str) -> None:
    """Sheet §8.11: DescribeProducers tells epoch, last sequence and time of every producer of a partition."""
    produce(client, topic, built([b"a", b"b"], producer=(77, 3, 5)))
    body = Struct(topics=[Struct(name=topic, partitions=[0, 9])])
    known, unknown = client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, body).topics[0].partitions
    (one,) = known.active_producers

    assert (one.producer_id, one.producer_epoch, one.last_sequence, one.last_timestamp) == (77, 3, 6, T)
    assert (one.current_txn_start_offset, unknown.error) == (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_producer_ids_are_never_given_twice(client: WireClient, broker: BrokerProcess) -> None:
    """Sheet §7.4, §7.5: fresh ids whatever the client had, across more than one block; half a pair is refused."""

    def ask(producer_id: int = -1, epoch: int = -1) -> Struct:
        body = Struct(transactional_id=None, txn_timeout_ms=0, producer_id=producer_id, producer_epoch=epoch)
        return client.ask(ApiKey.INIT_PRODUCER_ID, 4, body)

    found = [ask().producer_id for _ in range(1005)]

    assert len(set(found)) == 1005 and ask(5, 0).error == 0
    assert ask(5, -1).error == ask(-1, 3).error == ErrorCode.INVALID_REQUEST


def test_the_cluster_describes_itself(client: WireClient, broker: BrokerProcess) -> None:
    """Sheet §11.4: brokers, cluster id and controller, the same in Metadata; operations only where asked for."""

    def describe(kind: int, asked: bool) -> Struct:
        return client.ask(
            ApiKey.DESCRIBE_CLUSTER, 1, Struct(include_cluster_authorized_operations=asked, endpoint_type=kind)
        )

    told, metadata = describe(1, False), client.ask(ApiKey.METADATA, 12, Struct(topics=[], auto_create=False))
    (one,) = told.brokers

    assert (one.port, told.controller_id, told.cluster_id) == (broker.modern_port, 0, metadata.cluster_id)
    assert len(told.cluster_id) == 22 and told.cluster_authorized_operations == -(1 << 31)
    assert describe(1, True).cluster_authorized_operations > 0
    assert [describe(kind, False).error for kind in (2, 9)] == [114, 115]


def test_log_directories_and_sizes(client: WireClient, filled: str) -> None:
    """Sheet §11.4: every directory with the bytes of each partition asked for; unknown partitions are left out."""
    asked = [Struct(topic=filled, partitions=[0, 8])]
    (one,) = client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, Struct(topics=asked)).results
    everything = client.ask(ApiKey.DESCRIBE_LOG_DIRS, 1, Struct(topics=None)).results[0]

    size = len(client.fetch(filled, 0).records)
    assert [(t.name, [p.partition_size for p in t.partitions]) for t in one.topics] == [(filled, [size])]
    assert one.log_dir.startswith("/") and one.total_bytes >= one.usable_bytes > 0
    assert filled in {topic.name for topic in everything.topics}


def test_a_log_stays_in_its_directory(broker: BrokerProcess, client: WireClient, filled: str) -> None:
    """AlterReplicaLogDirs: where it is already is no error; 57, 9 and 3 for what cannot be (must show 3)."""
    (one,) = client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, Struct(topics=None)).results
    unwritten = f"{filled}-unwritten"
    with Admin(f"127.0.0.1:{broker.modern_port}") as admin:
        admin.create(unwritten, partitions=1)

    def altered(path: str, topic: str, index: int = 0, version: int = 2) -> int:
        dirs = [Struct(path=path, topics=[Struct(name=topic, partitions=[index])])]
        (row,) = client.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, version, Struct(dirs=dirs)).results
        found: int = row.partitions[0].error
        return found

    assert [altered(one.log_dir, filled), altered(one.log_dir, filled, version=1)] == [0, 0]
    assert altered("/nowhere", filled) == ErrorCode.LOG_DIR_NOT_FOUND
    assert altered(one.log_dir, "nobody") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert altered(one.log_dir, unwritten) == ErrorCode.REPLICA_NOT_AVAILABLE


def test_metadata_of_a_modern_topic(client: WireClient, filled: str) -> None:
    """D16: a topic made on the modern port is modern: it has an id, a leader with an epoch, and replicas."""
    question = Struct(topics=[Struct(name=filled, topic_id=NO_UUID)], auto_create=False, topic_ops=True)
    (topic,) = client.ask(ApiKey.METADATA, 12, question).topics
    (row,) = topic.partitions
    by_id = Struct(topics=[Struct(name=None, topic_id=topic.topic_id)], auto_create=False)

    assert (row.error, row.leader, row.leader_epoch, row.replicas, row.isr) == (0, 0, 0, [0], [0])
    assert topic.ops > 0 and not topic.internal
    assert client.ask(ApiKey.METADATA, 12, by_id).topics[0].name == filled
    unknown = Struct(topics=[Struct(name=None, topic_id=uuid.uuid4())], auto_create=False)
    assert client.ask(ApiKey.METADATA, 12, unknown).topics[0].error == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("clean", [True, False])
def test_everything_is_there_after_a_restart(tmp_path: Path, clean: bool) -> None:
    """Issue 25: offsets, bytes, ids and producers' sequences outlive a stop, and a kill -9 (the page cache stays)."""
    broker = BrokerProcess(tmp_path / "data", options=OPTIONS).start()
    batches = [numbered(n) for n in range(21)]
    question = Struct(topics=[Struct(name="kept", topic_id=NO_UUID)], auto_create=False)
    with WireClient(broker.modern_port or 0) as client:
        for batch in batches[:20]:
            produce(client, "kept", batch)
        before = client.fetch("kept", 0).records, client.ask(ApiKey.METADATA, 12, question).topics
    broker.stop() if clean else broker.kill()
    with BrokerProcess(tmp_path / "data", options=OPTIONS) as again, WireClient(again.modern_port or 0) as client:
        assert (client.fetch("kept", 0).records, client.ask(ApiKey.METADATA, 12, question).topics) == before
        repeated = produce(client, "kept", batches[19])
        following = produce(client, "kept", batches[20])

    assert (repeated.base_offset, following.base_offset) == (19, 20)
