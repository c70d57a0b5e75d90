"""The sentences of §3 and §3.2 about consumers, with a broker in memory behind real threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

import consumers.fetcher
from consumers import Consumer, Stream, StreamMessage
from consumers.algorithm1.consumer import Consumer as Algorithm1Consumer
from consumers.events import DeliveryHeld
from kafka2011.client import BrokerConnection
from kafka2011.errors import ConfigError, Kafka2011Error
from kafka2011.types import BrokerPartition
from kafka2011.wire import EARLIEST, FetchRequest, encode_set
from tests.waiting import PATIENCE_S, until
from zk_registry import paths
from zk_registry.brokers import encode_broker
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.operations import Create, Get, NoNode, Set


class Cluster:
    """One broker in memory, one ZooKeeper in memory."""

    def __init__(self) -> None:
        self.logs: dict[tuple[str, int], bytes] = {}
        self.zookeeper = FakeZooKeeper(schedule=self._later)
        self.registry = self.zookeeper.session(timeout_s=1e9)
        broker = Create(paths.broker_id(0), encode_broker("h", 9092, 0), ephemeral=True, make_parents=True)
        self.registry.perform(broker)

    def _later(self, session: FakeSession, notify: Callable[[], None]) -> None:
        # In another thread, as ZooKeeper's watches come.
        threading.Thread(target=notify, daemon=True).start()

    def topic(self, name: str, n_partitions: int) -> None:
        for number in range(n_partitions):
            self.logs.setdefault((name, number), b"")
        path, count = paths.topic_on_broker(name, 0), b"%d" % n_partitions
        try:
            self.registry.perform(Set(path, count))
        except NoNode:
            self.registry.perform(Create(path, count, ephemeral=True, make_parents=True))

    def publish(self, topic: str, partition: int, *payloads: bytes) -> None:
        self.logs[topic, partition] += encode_set(payloads)

    def connection(self, host: str, port: int) -> BrokerConnection:
        return _Memory(self)

    def offset(self, group: str, topic: str, partition: int) -> int | None:
        try:
            return int(self.registry.perform(Get(paths.offset(group, topic, BrokerPartition(0, partition)))).value)
        except NoNode:
            return None


class _Memory(BrokerConnection):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__("memory", 1)
        self._cluster = cluster

    def multifetch(self, fetches: Sequence[FetchRequest]) -> list[memoryview | Kafka2011Error]:
        logs = self._cluster.logs
        return [memoryview(logs[f.topic, f.partition])[f.offset : f.offset + f.max_size] for f in fetches]

    def offsets(self, topic: str, partition: int, time_ms: int = -1, max_offsets: int = 1) -> list[int]:
        return [0 if time_ms == EARLIEST else len(self._cluster.logs[topic, partition])]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    world = Cluster()
    monkeypatch.setattr(consumers.fetcher, "_connection", world.connection)
    yield world


def consumer(cluster: Cluster, group: str, **options: object) -> Algorithm1Consumer:
    """A consumer whose streams give up only after a time that bounds a hang."""
    options.setdefault("timeout_s", PATIENCE_S)
    return Consumer(cluster.zookeeper.session(), group, **options)  # type: ignore[arg-type]


def take(stream: Stream, n_messages: int) -> list[StreamMessage]:
    """The next ``n_messages``, finished."""
    found = [next(stream) for _ in range(n_messages)]
    stream.finish()
    return found


def payloads(stream: Stream, n_messages: int) -> list[bytes]:
    return [message.payload for message in take(stream, n_messages)]


def collect(*streams: Stream) -> list[StreamMessage]:
    """Read streams in threads of their own; the list grows as messages come."""
    found: list[StreamMessage] = []
    for stream in streams:
        threading.Thread(target=lambda stream=stream: found.extend(stream), daemon=True).start()
    return found


def test_the_sample_consumer_of_the_paper(cluster: Cluster) -> None:
    """The paper's sample: create message streams, iterate, work on the payload (§3)."""
    cluster.topic("topic1", 1)
    cluster.publish("topic1", 0, b"test message str")
    with consumer(cluster, "g") as it:
        streams = it.create_message_streams("topic1", 1)
        for message in streams[0]:
            payload = message.payload
            break
    assert payload == b"test message str"


def test_the_iterator_never_terminates_and_blocks_until_new_messages_come(cluster: Cluster) -> None:
    """If there are no more messages, the iterator blocks until new ones are published (§3)."""
    cluster.topic("t", 1)
    got: list[bytes] = []
    with consumer(cluster, "g", timeout_s=None) as it:
        stream = it.create_message_streams("t")[0]
        reader = threading.Thread(target=lambda: got.extend(m.payload for m in stream), daemon=True)
        reader.start()
        reader.join(0.2)
        assert reader.is_alive() and not got
        cluster.publish("t", 0, b"now")
        until(lambda: got == [b"now"], "the message arrives")
        assert reader.is_alive()
    reader.join(60)
    assert not reader.is_alive(), "closing the consumer ends it"


def test_point_to_point_within_a_group_and_publish_subscribe_across_groups(cluster: Cluster) -> None:
    """Each message goes to one consumer of a group; each group gets its own copy of everything (§3.2)."""
    cluster.topic("t", 4)
    for partition in range(4):
        cluster.publish("t", partition, b"m%d" % partition)
    with consumer(cluster, "shared") as a, consumer(cluster, "shared") as b:
        streams = [*a.create_message_streams("t"), *b.create_message_streams("t")]
        until(lambda: len(a.owned) == len(b.owned) == 2, "two partitions each")
        seen = collect(*streams)
        until(lambda: len(seen) >= 4, "everything is delivered")
    assert sorted(m.payload for m in seen) == [b"m0", b"m1", b"m2", b"m3"]
    with consumer(cluster, "other") as c:
        assert sorted(payloads(c.create_message_streams("t")[0], 4)) == [b"m0", b"m1", b"m2", b"m3"]


def test_messages_of_a_partition_are_delivered_in_order(cluster: Cluster) -> None:
    """Messages from a single partition are delivered to a consumer in order (§3.3)."""
    cluster.topic("t", 2)
    for i in range(500):
        cluster.publish("t", i % 2, b"%04d" % i)
    with consumer(cluster, "g") as it:
        seen = take(it.create_message_streams("t")[0], 500)
    for number in range(2):
        offsets = [m.offset for m in seen if m.partition.partition == number]
        assert offsets == sorted(offsets) and len(offsets) == 250


def test_offsets_are_remembered_in_zookeeper(cluster: Cluster) -> None:
    """A consumer that comes back goes on where the stored offset says: nothing lost, nothing twice (§3.2)."""
    cluster.topic("t", 1)
    cluster.publish("t", 0, *(b"%d" % i for i in range(10)))
    first = consumer(cluster, "g")
    stream = first.create_message_streams("t")[0]
    seen = [next(stream).payload for _ in range(4)]
    assert first.commit() == 1
    first.close()
    with consumer(cluster, "g") as second:
        seen += payloads(second.create_message_streams("t")[0], 6)
    assert seen == [b"%d" % i for i in range(10)]
    assert cluster.offset("g", "t", 0) == len(cluster.logs["t", 0])


def test_a_message_not_finished_is_delivered_again(cluster: Cluster) -> None:
    """At least once: a consumer closed with a message in its hand, not committed, leaves it to the next (§3.3)."""
    cluster.topic("t", 1)
    cluster.publish("t", 0, b"a", b"b")
    with consumer(cluster, "g") as first:
        assert next(first.create_message_streams("t")[0]).payload == b"a"
    with consumer(cluster, "g") as second:
        assert payloads(second.create_message_streams("t")[0], 2) == [b"a", b"b"]


@pytest.mark.parametrize(("reset", "expected"), [("smallest", [b"old", b"new"]), ("largest", [b"new"])])
def test_without_a_stored_offset_it_begins_with_smallest_or_largest(
    cluster: Cluster, reset: str, expected: list[bytes]
) -> None:
    """A new group begins with the smallest or largest offset, depending on a configuration (§3.2)."""
    cluster.topic("t", 1)
    cluster.publish("t", 0, b"old")
    with consumer(cluster, "g", reset=reset) as it:
        seen = collect(it.create_message_streams("t")[0])
        until(lambda: it.positions, "it knows where it begins")
        cluster.publish("t", 0, b"new")
        until(lambda: len(seen) >= len(expected), "the messages")
        assert [m.payload for m in seen] == expected


def test_a_consumer_can_deliberately_rewind(cluster: Cluster) -> None:
    """A consumer can rewind back to an old offset and re-consume data (§3.1)."""
    cluster.topic("t", 1)
    cluster.publish("t", 0, b"a", b"b", b"c")
    with consumer(cluster, "g") as it:
        stream = it.create_message_streams("t")[0]
        seen = take(stream, 3)
        it.seek("t", BrokerPartition(0, 0), seen[1].offset)
        assert payloads(stream, 2) == [b"b", b"c"]


def test_several_topics_and_a_filter(cluster: Cluster) -> None:
    """Streams of several topics in one call; a filter also takes topics that appear later (docs/consumer.md)."""
    for name in ("a1", "a2", "b1"):
        cluster.topic(name, 1)
        cluster.publish(name, 0, name.encode())
    with consumer(cluster, "fixed") as it:
        streams = it.create_message_streams({"a1": 1, "b1": 2})
        assert {name: len(made) for name, made in streams.items()} == {"a1": 1, "b1": 2}
        assert next(streams["a1"][0]).topic == "a1"
        owner = next(stream for stream in streams["b1"] if stream.partitions())
        assert next(owner).topic == "b1"
    with consumer(cluster, "filtered") as it:
        stream = it.create_message_streams_by_filter(whitelist="a.*")[0]
        assert {next(stream).topic, next(stream).topic} == {"a1", "a2"}
        cluster.topic("a3", 1)
        cluster.publish("a3", 0, b"late")
        assert next(stream).topic == "a3"
    with consumer(cluster, "others") as it:
        assert next(it.create_message_streams_by_filter(blacklist="a.*")[0]).topic == "b1"
        assert {owned.topic for owned in it.owned} == {"b1"}


def test_what_cannot_be_is_refused_with_a_reason(cluster: Cluster) -> None:
    """Illegal names, unknown editions and policies, streams created twice: each refused by name."""
    for bad in ("", "a/b", "..", "a b", "x" * 300):
        with pytest.raises(ConfigError, match="cannot be a group"):
            consumer(cluster, bad)
    with pytest.raises(ConfigError, match="consumer id"):
        consumer(cluster, "g", consumer_id="a/b")
    with pytest.raises(ConfigError, match="printed, shipped, sound"):
        consumer(cluster, "g", edition="perfect")
    with pytest.raises(ConfigError, match="smallest, largest, raise"):
        consumer(cluster, "g", reset="middle")
    with pytest.raises(ConfigError, match="whitelist or a blacklist"):
        consumer(cluster, "g").create_message_streams_by_filter()
    cluster.topic("t", 1)
    with consumer(cluster, "g") as it:
        it.create_message_streams("t")
        with pytest.raises(ConfigError, match="once for each consumer"):
            it.create_message_streams("t")


def test_a_clashing_consumer_id_is_refused_by_name(cluster: Cluster) -> None:
    """The second consumer with a configured id is refused, naming the first; the first is not disturbed (§3.2)."""
    cluster.topic("t", 1)
    with consumer(cluster, "g", consumer_id="me") as first:
        first.create_message_streams("t")
        second = Consumer(cluster.zookeeper.session(timeout_s=0.1), "g", consumer_id="me")
        with pytest.raises(Kafka2011Error, match=r"g_me.*is held by session"):
            second.create_message_streams("t")
        assert len(first.owned) == 1


def test_cut_off_from_zookeeper_it_stops_delivering_and_goes_on_afterwards(cluster: Cluster) -> None:
    """A consumer that may have lost its ownership without knowing delivers nothing until ZooKeeper answers (§3.2)."""
    cluster.topic("t", 1)
    session = cluster.zookeeper.session(timeout_s=1.0)
    with Consumer(session, "g") as it:
        seen = collect(it.create_message_streams("t")[0])
        cluster.publish("t", 0, b"before")
        until(lambda: len(seen) == 1, "the first message")
        session.suspend()
        until(lambda: any(isinstance(entry.event, DeliveryHeld) for entry in it.journal.since()), "delivery is held")
        cluster.publish("t", 0, b"after")
        assert len(seen) == 1
        session.resume()
        until(lambda: len(seen) == 2, "the second message")
        assert [m.payload for m in seen] == [b"before", b"after"]
        assert it.counters.sessions_lost == 0


def test_after_a_lost_session_it_reads_on_under_a_new_id(cluster: Cluster) -> None:
    """Losing the session costs no message: a new id, the same partitions, on from the stored offset (§3.2)."""
    cluster.topic("t", 2)
    session = cluster.zookeeper.session(timeout_s=1.0)
    with Consumer(session, "g", autocommit_interval_s=0.01) as it:
        seen = collect(it.create_message_streams("t")[0])
        cluster.publish("t", 0, b"before")
        until(lambda: cluster.offset("g", "t", 0) == len(cluster.logs["t", 0]), "the message is committed")
        old = it.consumer_id
        session.suspend()
        session.expire()
        session.resume()
        until(lambda: it.consumer_id != old and len(it.owned) == 2, "it owns everything again")
        cluster.publish("t", 1, b"after")
        until(lambda: [m.payload for m in seen] == [b"before", b"after"], "both, once each")
