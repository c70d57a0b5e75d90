"""confluent-kafka (librdkafka), unmodified, against the modern port. See docs/modern-port.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import decode_set, encode_set
from tests.waiting import until


def produce(bootstrap: str, topic: str, values: list[bytes], **settings: Any) -> None:
    """Produce and wait for every delivery report."""
    failed: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for number, value in enumerate(values):
        producer.produce(topic, value, key=str(number).encode(), on_delivery=lambda e, _: e and failed.append(e))
    assert producer.flush(60) == 0
    assert failed == []


class Member:
    """A consumer in a group, and what it was given."""

    def __init__(self, bootstrap: str, group: str, topic: str, **settings: Any) -> None:
        base = {
            "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "fetch.wait.max.ms": 50, "topic.metadata.refresh.interval.ms": 1000,
        }  # fmt: skip
        if settings.get("group.protocol") != "consumer":
            base |= {"heartbeat.interval.ms": 100, "session.timeout.ms": 30_000}
        self.consumer = Consumer(base | settings)
        self.values: list[bytes] = []
        self.n_revoked = 0
        self.n_assigned = 0
        self.consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.n_assigned += 1

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.n_revoked += len(partitions)
        self.commit()

    def poll(self) -> None:
        """Take what there is."""
        for message in self.consumer.consume(200, 0.05):
            if message.error() is None:
                self.values.append(message.value())

    def commit(self) -> None:
        """Commit what it consumed of what it owns, if anything."""
        try:
            self.consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:
                raise

    @property
    def partitions(self) -> set[int]:
        """What it owns now."""
        return {one.partition for one in self.consumer.assignment()}


def poll_until(members: list[Member], condition: Callable[[], object], what: str) -> None:
    """Keep every member polling until ``condition``."""

    def turn() -> object:
        for member in members:
            member.poll()
        return condition()

    until(turn, what)


def shared(members: list[Member], n_partitions: int = 4) -> bool:
    """Every partition has exactly one owner, and every member something."""
    owned = [member.partitions for member in members]
    return all(owned) and sum(map(len, owned)) == n_partitions == len(set().union(*owned))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_produce_and_fetch(bootstrap: str, unique: str, codec: str, idempotent: bool) -> None:
    """Every compression, idempotent or not: all values arrive, once, and the first report's offset is true (§1.7)."""
    topic = f"{codec}-{unique}"
    values = [b"value %d " % n * 20 for n in range(200)]
    settings = {"compression.type": codec, "enable.idempotence": idempotent, "linger.ms": 20}
    produce(bootstrap, topic, values, **settings)

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True,
                         "fetch.wait.max.ms": 50})  # fmt: skip
    consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(4)])
    found: list[bytes] = []
    ended: set[int] = set()

    def read() -> bool:
        for message in consumer.consume(500, 0.1):
            if message.error() is None:
                found.append(message.value())
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                ended.add(message.partition())
        return len(ended) == 4

    until(read, "the end of every partition")
    consumer.close()
    assert sorted(values) == sorted(found)


def test_one_log_two_eras(broker: BrokerProcess, bootstrap: str, unique: str) -> None:
    """A message of a 2011 client is consumed by a 2026 one from the same log, and the other way round (§1.7)."""
    topic, old_payloads = f"eras-{unique}", [b"\x00old%d\xff" % n for n in range(10)]
    with BrokerConnection(broker.host, broker.port) as old:
        old.produce(topic, 0, encode_set(old_payloads))
        produce(bootstrap, topic, [b"new"], partitioner="consistent", acks="all")
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        found: dict[int, list[bytes]] = {}

        def read() -> bool:
            for message in consumer.consume(100, 0.1):
                assert message.error() is None
                found.setdefault(message.partition(), []).append(message.value())
            return sum(map(len, found.values())) == 11

        until(read, "all eleven are consumed")
        committed = {one.partition: one.offset for one in consumer.commit(asynchronous=False)}
        consumer.close()
        back = {n: [m.payload for m in decode_set(old.fetch(topic, n, 0))] for n in found}
        ends = {n: old.offsets(topic, n)[0] for n in found}

    assert old_payloads == found[0][:10]
    assert back == found
    assert ends == {n: committed[n] for n in ends}


def test_fetch_from_beginning_offset_and_end(bootstrap: str, unique: str) -> None:
    """Any offset a client was given, or its end, is a place to start from (§1.7)."""
    topic = f"seek-{unique}"
    produce(bootstrap, topic, [b"m%d" % n for n in range(20)], **{"sticky.partitioning.linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "seek", "fetch.wait.max.ms": 50})

    def read(start: TopicPartition, n: int) -> list[tuple[int, bytes]]:
        consumer.assign([start])
        found: list[tuple[int, bytes]] = []

        def more() -> bool:
            for message in consumer.consume(100, 0.1):
                assert message.error() is None
                found.append((message.offset(), message.value()))
            return len(found) >= n

        until(more, f"{n} messages from {start}")
        return found

    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    whole = read(TopicPartition(topic, 0, OFFSET_BEGINNING), 2)
    assert (0, high - 1) == (low, read(TopicPartition(topic, 0, high - 1), 1)[0][0])
    assert whole[1:2] == read(TopicPartition(topic, 0, whole[0][0] + 1), 1)[:1]
    assert whole[1:2] == read(TopicPartition(topic, 0, whole[1][0]), 1)[:1]
    consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
    assert consumer.consume(1, 0.2) == []
    consumer.close()


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_two_members_share_and_resume(bootstrap: str, unique: str, strategy: str) -> None:
    """A second member takes its share, a commit is where the next one begins, nothing is lost or repeated (§2, §8)."""
    topic = group = f"share-{unique}"
    produce(bootstrap, topic, [b"%d" % n for n in range(100)])
    settings = {"partition.assignment.strategy": strategy}
    first = Member(bootstrap, group, topic, **settings)
    poll_until([first], lambda: len(first.partitions) == 4, "the first owns all")
    second = Member(bootstrap, group, topic, **settings)
    poll_until([first, second], lambda: shared([first, second]), "the two share")
    if strategy == "cooperative-sticky":
        assert first.n_revoked == 2, "only what moves is revoked"
    else:
        assert first.n_revoked == 4
    poll_until([first, second], lambda: len({*first.values, *second.values}) == 100, "all are consumed")
    for member in (first, second):
        member.commit()
        member.consumer.close()
    produce(bootstrap, topic, [b"late"])
    third = Member(bootstrap, group, topic, **settings)
    poll_until([third], lambda: third.values, "the third reads on")
    third.consumer.close()

    assert third.values == [b"late"]


def test_static_member_restarts_without_a_rebalance(bootstrap: str, unique: str) -> None:
    """A static member that comes back within its session costs the others nothing (§7)."""
    topic = group = f"static-{unique}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(60)
    one = Member(bootstrap, group, topic, **{"group.instance.id": "one"})
    two = Member(bootstrap, group, topic, **{"group.instance.id": "two"})
    poll_until([one, two], lambda: shared([one, two]), "the two share")
    assigned, mine = one.n_assigned, two.partitions
    two.consumer.close()
    two = Member(bootstrap, group, topic, **{"group.instance.id": "two"})
    poll_until([one, two], lambda: two.partitions, "the restarted member owns again")

    assert (mine, assigned) == (two.partitions, one.n_assigned)
    one.consumer.close()
    two.consumer.close()


def test_kip_848(bootstrap: str, unique: str) -> None:
    """The consumer protocol: join, hand over without stopping anyone, commit with the epoch, resume (§12)."""
    topic = group = f"848-{unique}"
    produce(bootstrap, topic, [b"%d" % n for n in range(100)])
    settings = {"group.protocol": "consumer"}
    first = Member(bootstrap, group, topic, **settings)
    poll_until([first], lambda: len(first.partitions) == 4, "the first owns all")
    second = Member(bootstrap, group, topic, **settings)
    poll_until([first, second], lambda: shared([first, second]), "the two share")
    assert first.n_revoked == 2
    poll_until([first, second], lambda: len({*first.values, *second.values}) == 100, "all are consumed")
    for member in (first, second):
        member.commit()
        member.consumer.close()
    produce(bootstrap, topic, [b"late"])
    third = Member(bootstrap, group, topic, **settings)
    poll_until([third], lambda: third.values, "the third reads on")
    third.consumer.close()

    assert third.values == [b"late"]


def test_admin(bootstrap: str, unique: str) -> None:
    """Create, list and describe topics and groups; offsets of a partition (§1.4)."""
    topic = group = f"admin-{unique}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(60)
    assert len(admin.list_topics(timeout=60).topics[topic].partitions) == 3
    with pytest.raises(Exception, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(60)
    member = Member(bootstrap, group, topic)
    poll_until([member], lambda: len(member.partitions) == 3, "the member owns all")
    described = admin.describe_consumer_groups([group])[group].result(60)
    listed = [group.group_id for group in admin.list_consumer_groups().result(60).valid]
    produce(bootstrap, topic, [b"x" * 10], acks="all")
    latest = {TopicPartition(topic, n): OffsetSpec.latest() for n in range(3)}
    ends = [found.result(60).offset for found in admin.list_offsets(latest).values()]
    member.consumer.close()

    assert (described.state.name, len(described.members)) == ("STABLE", 1)
    assert len(described.members[0].assignment.topic_partitions) == 3
    assert group in listed
    assert sorted(ends) == [0, 0, 20]
