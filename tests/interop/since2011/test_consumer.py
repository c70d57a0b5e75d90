"""Our consumer against our broker and against a real Kafka 3.9: the same tests over both (issue 28, must show 4)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from consumers.group_protocol.member import CommitRefused, Consumer, ConsumerRecord, Listener, OffsetAndMetadata
from kafka2011.testing import BrokerProcess
from kafka2011.types import TopicPartition
from since2011.client.admin import Admin
from since2011.client.connection import ModernConnection
from since2011.client.fetch.errors import NoOffsetForPartition, PositionOutOfRange
from since2011.producer import Producer, ProducerRecord
from since2011.wire.codec import ApiKey, Struct
from tests.interop.since2011.kraft_broker import KraftBroker
from tests.waiting import until

OURS = {"modern.port": 0, "log.format": "modern", "num.partitions": 1, "group.initial.rebalance.delay.ms": 0}
START = 1_700_000_000_000


class Side:
    """One of the two brokers, and what a test needs of it."""

    def __init__(self, port: int) -> None:
        self.port, self.bootstrap = port, f"127.0.0.1:{port}"
        self._open = ExitStack()

    def topic(self, partitions: int = 1, **settings: str) -> str:
        """A new one."""
        name = f"t-{uuid.uuid4().hex[:8]}"
        with Admin(self.bootstrap) as admin:
            admin.create(name, partitions=partitions, settings={k.replace("_", "."): v for k, v in settings.items()})
        return name

    def producer(self, **settings: object) -> Producer:
        """Closed when the test ends."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return self._open.enter_context(Producer({"bootstrap.servers": self.bootstrap} | named))

    def consumer(self, **settings: Any) -> Consumer:
        """From the beginning, with quick heartbeats; closed when the test ends."""
        quick = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "metadata_max_age_ms": 500}
        return self._open.enter_context(Consumer(quick | settings, bootstrap_servers=self.bootstrap))

    def reader(self, *partitions: TopicPartition, **settings: Any) -> Consumer:
        """A consumer of these partitions, without a group."""
        consumer = self.consumer(**settings)
        consumer.assign(partitions)
        return consumer

    def fill(self, topic: str, n_records: int, partition: int = 0) -> None:
        """Write values b"0", b"1", … stamped a second apart."""
        producer = self.producer()
        for number in range(n_records):
            producer.send(topic, b"%d" % number, partition=partition, timestamp=START + 1000 * number)
        producer.flush()

    def close(self) -> None:
        """End what the test has opened."""
        self._open.close()


@pytest.fixture(scope="module", params=["ours", "real"])
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where one of the two brokers listens."""
    if request.param == "ours":
        with BrokerProcess(options=OURS) as ours:
            assert ours.modern_port is not None
            yield ours.modern_port
    else:
        with KraftBroker(tmp_path_factory.mktemp("real")) as real:
            yield real.port


@pytest.fixture
def side(port: int) -> Iterator[Side]:
    """A broker for one test."""
    found = Side(port)
    try:
        yield found
    finally:
        found.close()


def read(consumer: Consumer, enough: int | Callable[[list[ConsumerRecord]], bool]) -> list[ConsumerRecord]:
    """Poll until so many have come, or until it is enough."""
    found: list[ConsumerRecord] = []

    def step() -> bool:
        found.extend(consumer.poll(0.1))
        return len(found) >= enough if isinstance(enough, int) else enough(found)

    until(step, f"{enough} records were read")
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_record_comes_back_equal(side: Side, codec: str) -> None:
    """Key, value, headers and time of every record, nulls and empty ones among them, in four codecs and none; one of
    them is larger than what is asked for of a partition (issue 28, point 4)."""
    topic = side.topic(max_message_bytes="4194304")
    sent = [
        ProducerRecord(
            topic,
            None if n % 7 == 0 else b"v%d" % n * (n % 50),
            key=None if n % 3 == 0 else b"k%d" % n,
            partition=0,
            timestamp=START + n * 37,
            headers=[("name", b"x%d" % n), ("empty", b""), ("null", None)] if n % 5 == 0 else [],
        )
        for n in range(1000)
    ]
    sent.append(ProducerRecord(topic, bytes(range(256)) * 6000, key=b"large", partition=0, timestamp=START))
    producer = side.producer(compression_type=codec, linger_ms=5, max_request_size=4 << 20)
    for record in sent:
        producer.send(**record._asdict())
    producer.flush()

    place = TopicPartition(topic, 0)
    found = read(side.reader(place, max_partition_fetch_bytes=20_000), len(sent))

    assert [record.offset for record in found] == list(range(len(sent)))
    assert [(r.key, r.value, r.timestamp, list(r.headers)) for r in found] == [
        (r.key, r.value, r.timestamp, list(r.headers)) for r in sent
    ]
    assert {(r.topic, r.partition, r.timestamp_type) for r in found} == {(topic, 0, 0)}


def test_only_what_was_committed(side: Side) -> None:
    """With read_committed nothing aborted and nothing of an open transaction is seen, and the end is the last stable
    offset; without it all is (sheet §8.10, control: the same log read uncommitted)."""
    topic = side.topic()
    place = TopicPartition(topic, 0)
    producer = side.producer(transactional_id=f"x-{topic}")
    producer.init_transactions()
    for number, committed in enumerate([True, False, True, False, True]):
        producer.begin_transaction()
        for part in range(3):
            producer.send(topic, b"%d-%d" % (number, part), partition=0)
        producer.flush()
        producer.commit_transaction() if committed else producer.abort_transaction()
    producer.begin_transaction()
    producer.send(topic, b"open", partition=0)
    producer.flush()
    committed = side.reader(place, isolation_level="read_committed")
    everything = side.reader(place)

    seen = read(committed, lambda _: committed.position(place) >= 20)
    assert [record.value for record in seen] == [b"%d-%d" % (n, part) for n in (0, 2, 4) for part in range(3)]
    assert committed.end_offsets([place]) == {place: 20}
    assert committed.current_lag(place) == 0
    all_of_it = read(everything, 16)
    assert [record.value for record in all_of_it if record.value == b"open" or record.value[:1] in b"13"] == [
        b"%d-%d" % (n, part) for n in (1, 3) for part in range(3)
    ] + [b"open"]
    assert everything.end_offsets([place]) == {place: 21}
    producer.abort_transaction()


def test_offsets_are_found_by_time(side: Side) -> None:
    """offsets_for_times finds the first record stamped then or later, nothing behind the last; begin and end (§6.1)."""
    topic = side.topic(2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    side.fill(topic, 10)
    consumer = side.consumer()

    found = consumer.offsets_for_times({first: START + 2500, second: START})
    assert found[first] is not None and (found[first].offset, found[first].timestamp) == (3, START + 3000)
    assert found[second] is None
    assert consumer.offsets_for_times({first: START + 9001}) == {first: None}
    assert consumer.beginning_offsets([first, second]) == {first: 0, second: 0}
    assert consumer.end_offsets([first, second]) == {first: 10, second: 0}
    consumer.assign([first])
    consumer.seek(first, 7)
    assert [record.value for record in read(consumer, 3)] == [b"7", b"8", b"9"]
    consumer.seek_to_beginning()
    assert consumer.position(first) == 0
    consumer.seek_to_end(first)
    assert consumer.position(first) == 10 and consumer.poll(0.2) == []


def test_without_a_rule_where_to_begin_the_application_decides(side: Side) -> None:
    """auto.offset.reset=none: no committed offset, or one that has left the log, is raised, and a seek goes on."""
    topic = side.topic()
    place = TopicPartition(topic, 0)
    side.fill(topic, 10)
    consumer = side.reader(place, group_id=f"g-{topic}", auto_offset_reset="none", enable_auto_commit=False)
    with pytest.raises(NoOffsetForPartition, match=f"{topic}-0"):
        read(consumer, 1)
    consumer.seek(place, 4)
    assert [record.value for record in read(consumer, 6)] == [b"4", b"5", b"6", b"7", b"8", b"9"]
    delete_records(side, place, before=6)
    consumer.seek(place, 2)
    with pytest.raises(PositionOutOfRange, match="offset 2 is outside the log"):
        read(consumer, 1)
    # The same with a rule: reading goes on at the first record there is.
    assert [record.offset for record in read(reset_to_begin(side, place), 4)] == [6, 7, 8, 9]


def delete_records(side: Side, place: TopicPartition, before: int) -> None:
    """Let the log begin later."""
    connection = ModernConnection("127.0.0.1", side.port, client_id="test")
    rows = [Struct(index=place.partition, offset=before)]
    body = Struct(topics=[Struct(name=place.topic, partitions=rows)], timeout_ms=30_000)
    (gone,) = connection.ask(ApiKey.DELETE_RECORDS, 2, body).topics[0].partitions
    connection.close()
    assert gone.error == 0


def reset_to_begin(side: Side, place: TopicPartition) -> Consumer:
    consumer = side.reader(place)
    consumer.seek(place, 1)
    return consumer


def test_a_paused_partition_is_silent_and_polls_are_bounded(side: Side) -> None:
    """pause holds a partition back and loses nothing of it; max_poll_records cuts what poll gives, in order (§14)."""
    topic = side.topic(2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    side.fill(topic, 100, 0)
    side.fill(topic, 50, 1)
    consumer = side.reader(first, second, max_poll_records=7)
    consumer.pause(first)
    assert {record.partition for record in read(consumer, 50)} == {1}
    assert consumer.poll(0.2) == [] and consumer.paused() == {first}
    consumer.resume(first)
    sizes: list[int] = []
    found: list[bytes | None] = []

    def step() -> bool:
        records = consumer.poll(0.1)
        sizes.append(len(records))
        found.extend(record.value for record in records)
        return len(found) >= 100

    until(step, "the partition that was paused was read")
    assert found == [b"%d" % number for number in range(100)] and max(sizes) == 7


class Diary(Listener):
    """Writes down what it hears, and how far the group had committed then."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.heard: list[tuple[str, int, int]] = []

    def assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("assigned", partitions)

    def revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("revoked", partitions)

    def lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("lost", partitions)

    def _note(self, what: str, partitions: Sequence[TopicPartition]) -> None:
        stored = self._consumer.committed(partitions)
        self.heard.append((what, len(partitions), sum(at.offset for at in stored.values() if at is not None)))


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_rebalance_commits_then_tells_then_goes_on(side: Side, strategy: str) -> None:
    """What goes is committed before the listener hears of it, whoever takes it begins there, and nothing comes twice;
    a cooperative member lets go only of what moves (sheet §8 of the group protocol)."""
    topic = side.topic(4)
    for partition in range(4):
        side.fill(topic, 25, partition)
    how = {"group_id": f"g-{topic}", "partition_assignment_strategy": strategy, "auto_commit_interval_ms": 600_000}
    first, second = side.consumer(**how), side.consumer(**how)
    diary = Diary(first)
    first.subscribe([topic], diary)
    seen = read(first, 100)
    second.subscribe([topic])

    def shared() -> bool:
        seen.extend(first.poll(0.05))
        seen.extend(second.poll(0.05))
        return len(first.assignment()) == len(second.assignment()) == 2

    until(shared, "both have half")
    first.close()
    until(lambda: bool(seen.extend(second.poll(0.05))) or len(second.assignment()) == 4, "the second has all")
    side.fill(topic, 5, 3)
    seen += read(second, 5)

    assert len({(record.partition, record.offset) for record in seen}) == len(seen) == 105
    gives = [(what, n) for what, n, _ in diary.heard]
    moved = 2 if strategy == "cooperative-sticky" else 4
    assert gives[:2] == [("assigned", 4), ("revoked", moved)] and gives[-1] == ("revoked", 2)
    assert diary.heard[1][2] == moved * 25


def test_commits_wait_or_tell_later(side: Side) -> None:
    """commit_sync stores note and epoch; commit_async tells in a later poll, in the order of the commits (§14)."""
    topic = side.topic()
    place = TopicPartition(topic, 0)
    side.fill(topic, 10)
    consumer = side.consumer(group_id=f"g-{topic}", enable_auto_commit=False)
    consumer.subscribe([topic])
    read(consumer, 10)
    assert consumer.committed([place]) == {place: None}
    consumer.commit_sync({place: OffsetAndMetadata(3, 0, "a note")})
    assert consumer.committed([place]) == {place: OffsetAndMetadata(3, 0, "a note")}
    told: list[tuple[int, object]] = []
    for offset in (4, 5, 6):
        consumer.commit_async({place: offset}, lambda offsets, error: told.append((offsets[place].offset, error)))
    until(lambda: consumer.poll(0.01) == [] and len(told) == 3, "the commits were answered")
    assert told == [(4, None), (5, None), (6, None)]
    consumer.commit_sync()
    stored = consumer.committed([place])[place]
    assert stored is not None and (stored.offset, stored.leader_epoch) == (10, 0)
    member = consumer.group_metadata()
    assert member.group_id == f"g-{topic}" and member.generation_id >= 1 and member.member_id


def test_who_does_not_poll_loses_its_place(side: Side) -> None:
    """After max.poll.interval.ms without a poll the member leaves: its commit is refused, its next poll hears lost."""
    topic = side.topic()
    place = TopicPartition(topic, 0)
    side.fill(topic, 10)
    consumer = side.consumer(group_id=f"g-{topic}", max_poll_interval_ms=500, enable_auto_commit=False)
    diary = Diary(consumer)
    consumer.subscribe([topic], diary)
    read(consumer, 10)

    def is_refused() -> bool:
        try:
            consumer.commit_sync({place: 5})
        except CommitRefused:
            return True
        return False

    until(is_refused, "the member had left")
    read(consumer, lambda _: [what for what, _, _ in diary.heard] == ["assigned", "lost", "assigned"])


def test_a_pattern_finds_topics_that_come_later(side: Side) -> None:
    """subscribe with a pattern: topics that match are read, those made later too, others never."""
    one, other = side.topic(), side.topic()
    prefix = f"p-{uuid.uuid4().hex[:6]}"
    consumer = side.consumer(group_id=prefix)
    consumer.subscribe(re.compile(f"{one}|{prefix}.*"))
    for topic in (one, other):
        side.fill(topic, 3)
    assert {record.topic for record in read(consumer, 3)} == {one}
    with Admin(side.bootstrap) as admin:
        admin.create(f"{prefix}-late", partitions=1, settings={})
    side.fill(f"{prefix}-late", 3)
    assert {record.topic for record in read(consumer, 3)} == {f"{prefix}-late"}
    assert consumer.subscription() == {one, f"{prefix}-late"}
