"""Our producer against our broker and against a real Kafka 3.9: the same tests over both (issue 28.3, must show 4)."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from consumers.group_protocol.member import Consumer
from kafka2011.testing import BrokerProcess
from kafka2011.types import TopicPartition
from since2011.cli.produce import produce
from since2011.client.admin import Admin
from since2011.client.fetch.chunk import ConsumerRecord
from since2011.client.group_metadata import GroupMetadata
from since2011.client.partitioner import partition_of_key
from since2011.producer import (
    AbortableError,
    FatalError,
    Interceptor,
    Producer,
    ProducerRecord,
    RecordMetadata,
    RecordRefused,
)
from since2011.producer.transaction_state import Wrong
from tests.interop.modern.proxy import Proxy
from tests.interop.since2011.kraft_broker import KraftBroker
from tests.waiting import until

OURS = {"modern.port": 0, "log.format": "modern", "num.partitions": 1}


@dataclass
class Side:
    """A broker behind a proxy that can lose answers."""

    name: str
    port: int
    proxy: Proxy

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.proxy.port}"

    def producer(self, **settings: object) -> Producer:
        """With quick back-offs; ``settings`` have underscores for dots."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        quick = {"bootstrap.servers": self.bootstrap, "retry.backoff.ms": 20, "reconnect.backoff.ms": 10}
        return Producer(quick | named)

    def topic(self, partitions: int = 1, **settings: str) -> str:
        """A new one."""
        name = f"t-{uuid.uuid4().hex[:8]}"
        with Admin(f"127.0.0.1:{self.port}") as admin:
            admin.create(name, partitions=partitions, settings={k.replace("_", "."): v for k, v in settings.items()})
        return name

    def stored(self, topic: str, partition: int = 0, *, committed: bool = False) -> list[ConsumerRecord]:
        """Everything a partition holds, but for what was aborted."""
        place = TopicPartition(topic, partition)
        isolation = "read_committed" if committed else "read_uncommitted"
        settings = {"bootstrap.servers": f"127.0.0.1:{self.port}", "isolation.level": isolation}
        with Consumer(settings) as consumer:
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            found: list[ConsumerRecord] = []
            until(
                lambda: bool(found.extend(consumer.poll(0.1))) or consumer.position(place) >= end,
                f"{place} is read up to {end}",
            )
            return found


@pytest.fixture(scope="module", params=["ours", "real"])
def side(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """One of the two brokers."""
    yield from _start(request.param, tmp_path_factory.mktemp(request.param))


def _start(name: str, directory: Path) -> Iterator[Side]:
    proxy = Proxy()
    if name == "ours":
        with BrokerProcess(options=OURS | {"modern.advertised.port": proxy.port}) as ours:
            assert ours.modern_port is not None
            proxy.target = ours.modern_port
            yield Side(name, ours.modern_port, proxy)
    else:
        with KraftBroker(directory, advertised_port=proxy.port) as real:
            proxy.target = real.port
            yield Side(name, real.port, proxy)
    proxy.close()


def values(records: list[ConsumerRecord]) -> list[bytes | None]:
    return [record.value for record in records]


def test_what_is_sent_is_stored_in_order(side: Side) -> None:
    """Issue 28.3: key, value, headers and time arrive; offsets and callbacks come in order of sending."""
    topic = side.topic()
    told: list[RecordMetadata | None] = []
    with side.producer(linger_ms=0) as producer:
        deliveries = [
            producer.send(topic, b"v%d" % n, b"k" if n % 2 else None, timestamp=1_700_000_000_000 + n,
                          headers=[("n", b"%d" % n), ("none", None)], on_delivery=lambda found, _: told.append(found))
            for n in range(500)
        ]  # fmt: skip

    assert [delivery.result().offset for delivery in deliveries] == list(range(500))
    assert told == [delivery.result() for delivery in deliveries]
    stored = side.stored(topic)
    assert values(stored) == [b"v%d" % n for n in range(500)]
    assert [record.timestamp - 1_700_000_000_000 for record in stored] == list(range(500))
    assert stored[1].key == b"k" and list(stored[1].headers) == [("n", b"1"), ("none", None)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec(side: Side, codec: str) -> None:
    """Issue 28.3, compression.type: what is compressed is read as it was sent."""
    topic = side.topic()
    with side.producer(compression_type=codec) as producer:
        deliveries = [producer.send(topic, b"%d " % n * 5000) for n in range(50)]

    assert [delivery.exception(60) for delivery in deliveries] == [None] * 50
    assert values(side.stored(topic)) == [b"%d " % n * 5000 for n in range(50)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_level_of_acks(side: Side, acks: str) -> None:
    """acks: 0 tells no offset, 1 and all do; all three store."""
    topic = side.topic()
    with side.producer(acks=acks) as producer:
        found = producer.send(topic, b"v").result(60)
    assert found.offset == (-1 if acks == "0" else 0)
    with side.producer() as producer:  # a second request on any connection shows that the first was taken
        assert producer.send(topic, b"w").result(60).partition == 0


def test_partitions_by_key_by_number_and_by_function(side: Side) -> None:
    """murmur2 of the key, as every client has it; a number wins; a function of ours is asked."""
    topic = side.topic(partitions=4)
    with side.producer() as producer:
        by_key = producer.send(topic, b"v", b"polygenelubricants")
        by_number = producer.send(topic, b"v", b"polygenelubricants", partition=3)
    with side.producer(partitioner_class=lambda topic, key, value, n, available: len(value) % n) as producer:
        by_function = producer.send(topic, b"12345", b"k")
        with pytest.raises(RecordRefused, match="partitions 0 to 3"):
            producer.send(topic, b"v", partition=4)

    assert (by_number.result().partition, by_function.result().partition) == (3, 1)
    assert by_key.result().partition == partition_of_key(b"polygenelubricants", 4)


def test_serializers_and_interceptors(side: Side) -> None:
    """Issue 28.3: interceptors see and change records before serialization, and hear of the outcome; a faulty one
    costs no record."""

    class Stamp(Interceptor):
        def __init__(self) -> None:
            self.heard: list[int] = []

        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(value=record.value + "!", headers=[("by", b"stamp")])

        def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
            assert metadata is not None and error is None
            self.heard.append(metadata.offset)
            raise RuntimeError("an interceptor with a defect")

    topic, stamp = side.topic(), Stamp()
    settings = {"interceptor_classes": [stamp], "value_serializer": lambda topic, value: value.encode()}
    with side.producer(**settings) as producer:
        producer.send(topic, "hé").result(60)

    (record,) = side.stored(topic)
    assert (record.value, list(record.headers), stamp.heard) == ("hé!".encode(), [("by", b"stamp")], [0])


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotence", "control"])
def test_an_answer_is_lost_after_the_append(side: Side, idempotent: bool) -> None:
    """KIP-98: the connection is cut after the append and before the answer: stored exactly once with idempotence, more
    than once without (the control)."""
    topic = side.topic()
    with side.producer(enable_idempotence=idempotent, linger_ms=0) as producer:
        producer.send(topic, b"before").result(60)
        side.proxy.n_cut, side.proxy.cuts = 0, 2
        deliveries = [producer.send(topic, b"%d" % n) for n in range(100)]
        for delivery in deliveries:
            delivery.result(60)

    assert side.proxy.n_cut == 2
    stored = values(side.stored(topic))
    wanted = [b"before"] + [b"%d" % n for n in range(100)]
    if idempotent:
        assert stored == wanted
    else:
        assert len(stored) > len(wanted) and set(stored) == set(wanted)


def test_threads_share_a_producer(side: Side) -> None:
    """Issue 28.3, thread-safe: eight threads, one producer; each thread's records in its order."""
    topic = side.topic(partitions=3)
    with side.producer(linger_ms=1, batch_size=500) as producer:

        def work(name: int) -> None:
            for n in range(200):
                producer.send(topic, b"%d %d" % (name, n), partition=name % 3)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush(60)

    found = [value.split() for partition in range(3) for value in values(side.stored(topic, partition)) if value]
    for name in range(8):
        assert [int(n) for who, n in found if int(who) == name] == list(range(200))


def test_a_batch_that_is_too_large_is_split(side: Side) -> None:
    """MESSAGE_TOO_LARGE: several records in a batch are sent again in smaller ones; one alone is refused."""
    topic = side.topic(max_message_bytes="2000")
    with side.producer(batch_size=10_000, linger_ms=1000) as producer:
        deliveries = [producer.send(topic, b"%03d" % n + b"." * 300) for n in range(30)]
        too_large = producer.send(topic, b"x" * 3000)
        producer.flush(60)
        metrics = producer.metrics()

    assert [delivery.result().offset for delivery in deliveries] == list(range(30))
    assert metrics.batch_split_total >= 1
    with pytest.raises(RecordRefused, match=r"max\.message\.bytes"):
        too_large.result()
    assert [value[:3] for value in values(side.stored(topic)) if value] == [b"%03d" % n for n in range(30)]


def test_after_a_refused_record_the_next_ones_go_on(side: Side) -> None:
    """Idempotence: a record that is refused leaves a gap in the sequences; the epoch is raised and nothing is lost."""
    topic = side.topic(max_message_bytes="2000")
    with side.producer(batch_size=0) as producer:
        deliveries = [producer.send(topic, b"x" * (3000 if n == 5 else 3)) for n in range(20)]
        errors = [delivery.exception(60) for delivery in deliveries]

    assert [n for n, error in enumerate(errors) if error is not None] == [5]
    assert len(side.stored(topic)) == 19


def test_a_transaction_counts_or_does_not(side: Side) -> None:
    """KIP-98: committed records are read with read_committed, aborted ones are not; without they all are."""
    topic = side.topic(partitions=2)
    with side.producer(transactional_id=f"id-{topic}") as producer:
        producer.init_transactions()
        for n, ending in enumerate(("commit", "abort", "commit")):
            producer.begin_transaction()
            for partition in (0, 1):
                producer.send(topic, b"%d %s" % (n, ending.encode()), partition=partition)
            producer.commit_transaction() if ending == "commit" else producer.abort_transaction()

    for partition in (0, 1):
        assert values(side.stored(topic, partition, committed=True)) == [b"0 commit", b"2 commit"]


def test_an_older_producer_is_fenced(side: Side) -> None:
    """KIP-98: whoever calls init_transactions with the same transactional.id fences the one before, for good."""
    topic = side.topic()
    old, new = (side.producer(transactional_id=f"id-{topic}") for _ in range(2))
    with old, new:
        old.init_transactions()
        old.begin_transaction()
        old.send(topic, b"zombie").result(60)
        new.init_transactions()
        with pytest.raises(FatalError, match="another producer"):
            old.commit_transaction()
        with pytest.raises(FatalError):
            old.begin_transaction()
        new.begin_transaction()
        new.send(topic, b"alive")
        new.commit_transaction()

    assert values(side.stored(topic, committed=True)) == [b"alive"]


def test_offsets_are_committed_with_the_transaction(side: Side) -> None:
    """send_offsets_to_transaction: offsets count when the transaction does, and not when it is aborted."""
    topic, group = side.topic(), f"g-{uuid.uuid4().hex[:8]}"
    place = TopicPartition(topic, 0)
    with side.producer(transactional_id=f"id-{topic}") as producer:
        producer.init_transactions()
        for offset, ending in ((5, "commit"), (9, "abort")):
            producer.begin_transaction()
            producer.send(topic, b"%d" % offset)
            producer.send_offsets_to_transaction({place: offset}, GroupMetadata(group))
            producer.commit_transaction() if ending == "commit" else producer.abort_transaction()

    assert committed_offset(side, group, place) == 5


def committed_offset(side: Side, group: str, place: TopicPartition) -> int:
    with Consumer({"bootstrap.servers": side.bootstrap, "group.id": group}) as consumer:
        return consumer.committed([place])[place].offset


def test_after_a_failed_record_a_transaction_can_only_be_aborted(side: Side) -> None:
    """A refused record: commit raises and says to abort; after abort_transaction the next one goes on (KIP-360)."""
    topic = side.topic(max_message_bytes="2000")
    with side.producer(transactional_id=f"id-{topic}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"good")
        producer.send(topic, b"x" * 3000)
        with pytest.raises(AbortableError):
            producer.commit_transaction()
        with pytest.raises(AbortableError):
            producer.send(topic, b"no")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"again")
        producer.commit_transaction()

    assert values(side.stored(topic, committed=True)) == [b"again"]


def test_calls_out_of_turn_are_named(side: Side) -> None:
    """Each call that does not fit the state says what to do; the producer goes on."""
    topic = side.topic()
    with side.producer(transactional_id=f"id-{topic}") as producer:
        with pytest.raises(Wrong, match="init_transactions"):
            producer.begin_transaction()
        producer.init_transactions()
        with pytest.raises(Wrong, match="begin_transaction"):
            producer.send(topic, b"v")
        with pytest.raises(Wrong, match="nothing to commit"):
            producer.commit_transaction()
        producer.begin_transaction()
        producer.commit_transaction()


def test_a_transaction_survives_lost_answers(side: Side) -> None:
    """Connections cut before answers, within transactions: every committed record once."""
    topic = side.topic()
    with side.producer(transactional_id=f"id-{topic}", linger_ms=0) as producer:
        producer.init_transactions()
        for n in range(10):
            side.proxy.n_cut, side.proxy.cuts = 0, 1
            producer.begin_transaction()
            for m in range(5):
                producer.send(topic, b"%d %d" % (n, m))
            producer.commit_transaction()
            assert side.proxy.n_cut == 1

    assert values(side.stored(topic, committed=True)) == [b"%d %d" % (n, m) for n in range(10) for m in range(5)]


def test_the_command_sends_in_a_transaction(side: Side) -> None:
    """kafka2011 produce -m -X transactional.id=…: all lines count together; a line that is refused undoes them all."""
    topic = side.topic(max_message_bytes="2000")
    words = [topic, "-m", side.bootstrap, "-X", f"transactional.id=id-{topic}"]
    good = CliRunner().invoke(produce, words, input="a\nb\n")
    bad = CliRunner().invoke(produce, words, input="c\n" + "x" * 3000 + "\n")

    assert "2 records sent" in good.output and "committed" in good.output
    assert bad.exit_code == 1 and "max.message.bytes" in bad.output
    assert values(side.stored(topic, committed=True)) == [b"a", b"b"]
