"""Transactions over the wire, as one client says them byte by byte; see docs/transactions.md."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kafka2011.testing import BrokerProcess
from since2011.topics.internal import TRANSACTIONS_TOPIC
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.modern_topics.conftest import OPTIONS
from tests.integration.modern_topics.transactional import Transactional, fetched, read
from tests.integration.since2011.wire_client import WireClient
from tests.waiting import until


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """A broker that looks for transactions that had their time very often."""
    options = OPTIONS | {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 50}
    with BrokerProcess(options=options) as process:
        yield process


@pytest.fixture
def producer(client: WireClient, topic: str) -> Transactional:
    """A producer of the test's own; its topic is there."""
    assert not client.produce(topic, [b"before"]).error
    return Transactional(client, f"tx-{uuid.uuid4().hex[:8]}").init()


def test_a_commit_shows_everything_and_an_abort_nothing(
    client: WireClient, topic: str, producer: Transactional
) -> None:
    """Its records are seen when it is committed, never if it is aborted; read_uncommitted sees all (§6.2)."""
    producer.add(topic, 0)
    producer.produce(topic, b"a", b"b")
    during = read(client, topic, committed=True)
    producer.end(commit=True)
    until(producer.is_complete, "the marker is written")
    producer.add(topic, 0)
    producer.produce(topic, b"c")
    producer.end(commit=False)
    until(producer.is_complete, "the marker is written")

    assert during == [b"before"]
    assert read(client, topic, committed=True) == [b"before", b"a", b"b"]
    assert read(client, topic, committed=False) == [b"before", b"a", b"b", b"c"]
    assert client.end(topic) == 6, "two markers have an offset each"


def test_several_partitions_and_offsets_end_together(client: WireClient, producer: Transactional, topic: str) -> None:
    """Records of two topics and an offset count at once; until then the offset is unstable (§10.3)."""
    other, group = f"{topic}-2", f"g-{topic}"
    client.produce(other, [b"before"])
    client.ask(ApiKey.FIND_COORDINATOR, 2, Struct(key=group, key_type=0))
    producer.add(topic, 0)
    producer.add(other, 0)
    producer.add_offsets(group)
    producer.produce(topic, b"x")
    producer.produce(other, b"y")
    assert until_not_loading(lambda: producer.commit_offset(group, topic, 1)) == ErrorCode.NONE
    pending, before = offset_of(client, group, topic, stable=True), offset_of(client, group, topic, stable=False)
    producer.end(commit=True)
    until(producer.is_complete, "the markers are written")

    assert (pending.error, before.offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert (offset_of(client, group, topic, stable=True).error, offset_of(client, group, topic).offset) == (0, 1)
    assert [read(client, each, committed=True) for each in (topic, other)] == [[b"before", b"x"], [b"before", b"y"]]


def test_aborted_offsets_never_were(client: WireClient, producer: Transactional, topic: str) -> None:
    """An abort leaves the offset that was committed before (§10.3)."""
    group = f"g-{topic}"
    client.ask(ApiKey.FIND_COORDINATOR, 2, Struct(key=group, key_type=0))
    for offset, commit in ((5, True), (9, False)):
        producer.add_offsets(group)
        assert until_not_loading(lambda offset=offset: producer.commit_offset(group, topic, offset)) == ErrorCode.NONE
        producer.end(commit=commit)
        until(producer.is_complete, "the marker is written")

    assert offset_of(client, group, topic, stable=True).offset == 5


def test_a_new_instance_aborts_and_fences_the_old_one(client: WireClient, producer: Transactional, topic: str) -> None:
    """InitProducerId aborts what was left open with a raised epoch; the zombie is refused everywhere (§8.3, §8.7)."""
    producer.add(topic, 0)
    producer.produce(topic, b"zombie's")
    first = Transactional(client, producer.name).init_once()
    newer = Transactional(client, producer.name).init()

    assert first.error == ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction is aborted first"
    assert producer.epoch + 2 == newer.epoch, "a take-over costs two epochs"
    assert producer.produce(topic, b"too late").error == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end_once(commit=True) == ErrorCode.PRODUCER_FENCED
    assert producer.end_once(commit=True, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.add_once(topic, 0) == [ErrorCode.PRODUCER_FENCED]
    assert read(client, topic, committed=True) == [b"before"]


def test_a_transaction_that_had_its_time_is_aborted(client: WireClient, topic: str) -> None:
    """After its timeout a transaction is aborted with a raised epoch, and readers go on (§8.8)."""
    client.produce(topic, [b"before"])
    slow = Transactional(client, f"slow-{topic}", timeout_ms=100).init()
    slow.add(topic, 0)
    slow.produce(topic, b"late")
    until(slow.is_complete, "it is aborted")

    assert ("CompleteAbort", slow.epoch + 1) == (slow.described().state, slow.described().epoch)
    assert fetched(client, topic, committed=True).last_stable == 3
    assert slow.produce(topic, b"later").error == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_partition_that_was_not_added_takes_no_records(client: WireClient, topic: str) -> None:
    """The leader asks the coordinator: 48, from Produce 11 on 120; nothing is stored (KIP-890, §8.6)."""
    client.produce(topic, [b"before"])
    producer = Transactional(client, f"tx-{topic}").init()
    stranger = Transactional(client, f"tx-{topic}")
    stranger.producer_id, stranger.epoch = producer.producer_id + 1000, 0

    assert producer.produce(topic, b"x", version=10).error == ErrorCode.INVALID_TXN_STATE
    assert producer.produce(topic, b"x", version=11).error == ErrorCode.TRANSACTION_ABORTABLE
    assert stranger.produce(topic, b"x").error == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert client.end(topic) == 1


def test_no_batch_comes_behind_the_end_of_its_transaction(
    client: WireClient, producer: Transactional, topic: str
) -> None:
    """A batch of a transaction that has ended begins no new one: no transaction hangs (KIP-890)."""
    producer.add(topic, 0)
    producer.produce(topic, b"in time")
    producer.end(commit=True)
    until(producer.is_complete, "the marker is written")

    late = producer.produce_once(topic, (b"late",), sequence=1)
    assert late.error == ErrorCode.TRANSACTION_ABORTABLE
    assert client.end(topic) == fetched(client, topic, committed=True).last_stable


def test_the_order_of_checks(client: WireClient, producer: Transactional, topic: str) -> None:
    """53 for the request, then topic and form, then the coordinator's word, only then acks (corrections, §1.4)."""
    without_id = producer.produce_once(topic, (b"x",), name=None, acks=7)
    nowhere = producer.produce_once(topic, (b"x",), partition=99, acks=7)
    not_added = producer.produce_once(topic, (b"x",), acks=7)
    producer.add(topic, 0)
    wrong_acks = producer.produce_once(topic, (b"x",), acks=7)

    assert [each.error for each in (without_id, nowhere, not_added, wrong_acks)] == [
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_REQUIRED_ACKS,
    ]


def test_a_partition_nobody_knows_adds_none(producer: Transactional, topic: str) -> None:
    """One unknown partition: 3 for it, 55 for all others (§8.4)."""
    errors = producer.add_once(topic, 0, 77)

    assert errors == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.described().topics == []


def test_what_init_producer_id_refuses(client: WireClient, topic: str) -> None:
    """Half an identity 42, no name 42, a timeout that cannot be 50 (§8.3)."""
    producer = Transactional(client, f"tx-{topic}").init()
    too_long = Transactional(client, producer.name, timeout_ms=900_001)
    nameless = Transactional(client, "")

    assert producer.init_once(5, -1).error == ErrorCode.INVALID_REQUEST
    assert nameless.init_once().error == ErrorCode.INVALID_REQUEST
    assert too_long.init_once().error == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert producer.init_once(producer.producer_id, 7).error == ErrorCode.PRODUCER_FENCED
    assert producer.init_once(producer.producer_id, 7, version=3).error == ErrorCode.INVALID_PRODUCER_EPOCH


def test_markers_of_the_past_are_refused(client: WireClient, producer: Transactional, topic: str) -> None:
    """WriteTxnMarkers: 47 for an older epoch, 52 for an older coordinator, 3 for no partition; others go on (§8.6)."""
    producer.add(topic, 0)
    producer.produce(topic, b"x")

    def mark(epoch: int, coordinator_epoch: int, partition: int = 0) -> int:
        topics = [Struct(name=topic, partitions=[partition])]
        marker = Struct(
            producer_id=producer.producer_id, epoch=epoch, commit=False, topics=topics,
            coordinator_epoch=coordinator_epoch,
        )  # fmt: skip
        answer = client.ask(ApiKey.WRITE_TXN_MARKERS, 1, Struct(markers=[marker]))
        error: int = answer.markers[0].topics[0].partitions[0].error
        return error

    assert [mark(1, 5), mark(1, 5, partition=9)] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [mark(0, 5), mark(1, 4)] == [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED]


def test_verification_between_brokers(client: WireClient, producer: Transactional, topic: str) -> None:
    """AddPartitionsToTxn 4 and 5 with verify_only tells what is part of the transaction, and adds nothing (KIP-890)."""
    producer.add(topic, 0)
    topics = [Struct(name=topic, partitions=[0, 1])]
    one = Struct(
        transactional_id=producer.name, producer_id=producer.producer_id, epoch=producer.epoch, verify_only=True,
        topics=topics,
    )  # fmt: skip
    for version in (4, 5):
        answer = client.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, Struct(transactions=[one]))
        told = [each.error for each in answer.results[0].topics[0].partitions]

        assert (answer.error, told) == (0, [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE])


def test_tools_see_it(client: WireClient, producer: Transactional, topic: str) -> None:
    """ListTransactions filters by state, producer and duration; unknown ids are 105 (§8.11)."""
    producer.add(topic, 0)

    def listed(**asked: object) -> Struct:
        filters = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1} | asked
        return client.ask(ApiKey.LIST_TRANSACTIONS, 1, Struct(**filters))

    def names(answer: Struct) -> bool:
        return producer.name in [each.transactional_id for each in answer.transactions]

    assert names(listed(state_filters=["Ongoing"]))
    assert names(listed(producer_id_filters=[producer.producer_id]))
    assert not names(listed(state_filters=["Empty"]))
    assert not names(listed(duration_filter=3_600_000))
    assert listed(state_filters=["Nonsense"]).unknown_state_filters == ["Nonsense"]
    unknown = Transactional(client, f"nobody-{topic}").described()
    assert unknown.error == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_the_topic_of_transactions_is_one_like_others(client: WireClient, producer: Transactional) -> None:
    """50 partitions, compacted, internal, and nobody but brokers writes to it (§8.1)."""
    asked = Struct(topics=[Struct(topic_id=uuid.UUID(int=0), name=TRANSACTIONS_TOPIC)], auto_create=False)
    (found,) = client.ask(ApiKey.METADATA, 12, asked).topics

    assert (len(found.partitions), found.internal) == (50, True)
    assert client.produce(TRANSACTIONS_TOPIC, [b"x"]).error == ErrorCode.INVALID_TOPIC


def until_not_loading(commit: object) -> int:
    """The error of a commit, once the group's offsets are read."""
    assert callable(commit)
    waits = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    found: list[int] = []

    def settled() -> bool:
        found[:] = [commit()]
        return found[0] not in waits

    until(settled, "the group's offsets are read")
    return found[0]


def offset_of(client: WireClient, group: str, topic: str, *, stable: bool = False) -> Struct:
    """OffsetFetch of partition 0."""
    body = Struct(group=group, topics=[Struct(name=topic, partitions=[0])], require_stable=stable)
    found: Struct = client.ask(ApiKey.OFFSET_FETCH, 7, body).topics[0].partitions[0]
    return found
